package planted // want ST1000

//lint:file-ignore S1002,U1000 reason

func WholeFile(ok bool) {
	if ok == true {
		return
	}
	if ok == false {
		return
	}
}

func unusedInIgnoredFile() {}
