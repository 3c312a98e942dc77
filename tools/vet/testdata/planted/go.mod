module example.com/planted

go 1.26.0

require example.com/old v1.0.0

replace example.com/old => ./old
