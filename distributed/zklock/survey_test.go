package zklock

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestAStateTellsACzxidOnlyIfNothingElseChanged(t *testing.T) {
	const name = "_c_x-lock-0000000007"
	// Seven nodes had been made, and five deleted.
	before := zk.Stat{Czxid: 3, Cversion: 12, NumChildren: 2, Pzxid: 90}
	after := zk.Stat{Czxid: 3, Cversion: 13, NumChildren: 3, Pzxid: 100}
	require.EqualValues(t, 100, czxid(name, before, after))
	require.Zero(t, czxid("lock", before, after), "no number")
	for what, change := range map[string]func(name *string, before, after *zk.Stat){
		"another node was made first": func(name *string, _, after *zk.Stat) {
			*name = "-lock-0000000008"
			after.Cversion++
			after.NumChildren++
		},
		"a node was made or deleted then":     func(_ *string, _, after *zk.Stat) { after.Cversion++; after.Pzxid++ },
		"a node was made that is not counted": func(_ *string, _, after *zk.Stat) { after.NumChildren-- },
		"the first state is late": func(_ *string, before, after *zk.Stat) {
			*before, *after = *after, zk.Stat{Czxid: 3, Cversion: 14, NumChildren: 2, Pzxid: 101}
		},
		"both states are late":        func(_ *string, before, after *zk.Stat) { *before = *after },
		"there was no directory":      func(_ *string, before, _ *zk.Stat) { *before = zk.Stat{} },
		"it is another directory now": func(_ *string, _, after *zk.Stat) { after.Czxid++ },
	} {
		name, before, after := name, before, after
		change(&name, &before, &after)
		require.Zero(t, czxid(name, before, after), what)
	}
}
