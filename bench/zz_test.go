package bench
import ("testing";"fmt";"sort";"context";"time")
func TestZZ(t *testing.T){ for _,l:=range Locks(){ for _,s:=range []bool{true,false}{ for _,d:=range []time.Duration{200,1000}{
 r,err:=Contend(context.Background(),l.New(),Contest{Goroutines:64,For:d*time.Millisecond,Inside:300,Outside:300,Sample:1,Streaks:s}); sort.Ints(r.Counts); fmt.Println(l.Name,s,d,err,int(r.PerOp()),r.Jain,r.Streak,r.Counts[0],r.Counts[16],r.Counts[32],r.Counts[48:])}}}}
