package reentrant
import ("testing";"sync";"github.com/jucgo/locks/fair";"time";"sort";"slices")
var sinkW uint64
func work(n int) { x:=uint64(n)|1; for range n { x^=x<<13; x^=x>>7; x^=x<<17 }; if x==0 {sinkW=x} }
func BenchmarkCon64(b *testing.B){
 t:=time.Now(); for range 1000 {work(100)}; per:=time.Since(t).Seconds()*1e9/100000; n300:=int(300/per)
 for _,x:=range []struct{n string; l sync.Locker}{{"sync",new(sync.Mutex)},{"fair",new(fair.Mutex)},{"barg",new(fair.BargingMutex)},{"reen",new(Mutex)},{"reenF",New(fair.FIFO)},{"chan",make(chanL,1)}} {
 b.Run(x.n,func(b *testing.B){ g:=64; var wg sync.WaitGroup; c:=0; ws:=make([][]int64,g)
   for i:=range g { n:=b.N/g; if i==0 {n+=b.N%g}; wg.Add(1); ws[i]=make([]int64,0,n); go func(){defer wg.Done(); for range n {t:=time.Now();x.l.Lock();ws[i]=append(ws[i],int64(time.Since(t)));c++;work(n300);x.l.Unlock();work(n300)}}()}
   wg.Wait(); if c!=b.N {b.Fatal(c,b.N)}
   all:=slices.Concat(ws...); sort.Slice(all,func(i,j int)bool{return all[i]<all[j]})
   b.ReportMetric(float64(all[len(all)/2]),"p50"); b.ReportMetric(float64(all[len(all)*99/100]),"p99"); b.ReportMetric(float64(all[len(all)-1]),"max")
 })}
}
