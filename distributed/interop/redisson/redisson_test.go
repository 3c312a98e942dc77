package redisson

import "testing"

var situations = []situation{
	{"whoever plays which part leaves the same in Redis", traces},
	{"the scripts of both sides write to the same keys", scriptsWriteTheSameKeys},
}

func TestWithTheCurrentRedisson(t *testing.T) { perform(t, current, situations) }

func TestWithAnOldRedisson(t *testing.T) { perform(t, before, situations) }
