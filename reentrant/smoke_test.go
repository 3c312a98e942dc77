package reentrant
import ("testing";"sync";"github.com/jucgo/locks/fair";"golang.org/x/sync/semaphore";"context";"runtime")
func BenchmarkUn(b *testing.B){
 var sm sync.Mutex; var fm fair.Mutex; var bm fair.BargingMutex; var rm Mutex; rf:=New(fair.FIFO)
 b.Run("sync",func(b *testing.B){for b.Loop(){sm.Lock();sm.Unlock()}})
 b.Run("fair",func(b *testing.B){for b.Loop(){fm.Lock();fm.Unlock()}})
 b.Run("barg",func(b *testing.B){for b.Loop(){bm.Lock();bm.Unlock()}})
 b.Run("reen",func(b *testing.B){for b.Loop(){rm.Lock();rm.Unlock()}})
 b.Run("reenF",func(b *testing.B){for b.Loop(){rf.Lock();rf.Unlock()}})
 b.Run("again",func(b *testing.B){rm.Lock();for b.Loop(){rm.Lock();rm.Unlock()};rm.Unlock()})
}
type chanL chan struct{}
func (c chanL) Lock(){c<-struct{}{}}
func (c chanL) Unlock(){<-c}
type semL struct{*semaphore.Weighted}
func (c semL) Lock(){c.Acquire(context.Background(),1)}
func (c semL) Unlock(){c.Release(1)}
func BenchmarkCon(b *testing.B){
 for _,x:=range []struct{n string; l sync.Locker}{{"sync",new(sync.Mutex)},{"fair",new(fair.Mutex)},{"barg",new(fair.BargingMutex)},{"reen",new(Mutex)},{"reenF",New(fair.FIFO)},{"sema",semL{semaphore.NewWeighted(1)}},{"chan",make(chanL,1)}} {
 b.Run(x.n,func(b *testing.B){ b.ReportAllocs(); g:=4*runtime.GOMAXPROCS(0); var wg sync.WaitGroup; c:=0
   for i:=range g { n:=b.N/g; if i==0 {n+=b.N%g}; wg.Add(1); go func(){defer wg.Done(); for range n {x.l.Lock();c++;x.l.Unlock()}}()}
   wg.Wait(); if c!=b.N {b.Fatal(c,b.N)}
 })}
}
func BenchmarkPing(b *testing.B){ a,c:=make(chan int),make(chan int); go func(){for range a {c<-1};close(c)}(); for b.Loop(){a<-1;<-c}; close(a)}
