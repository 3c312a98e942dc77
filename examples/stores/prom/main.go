// Command prom serves the metrics of a lock to Prometheus.
package main

import (
	"cmp"
	"context"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/prom"
)

func main() {
	recorder := record.New(record.Options{})
	prometheus.MustRegister(prom.NewCollector(recorder))
	accounts := recorder.Wrap("accounts", new(fair.Mutex))

	for range 5 {
		go func() {
			for {
				pay(accounts)
			}
		}()
	}
	http.Handle("/metrics", promhttp.Handler())
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "localhost:2112"), nil))
}

// pay holds the lock for up to 10 ms, and waits for it for up to 30 ms.
func pay(accounts locks.TryLocker) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_ = locks.Do(ctx, accounts, func(context.Context) error {
		time.Sleep(rand.N(10 * time.Millisecond)) // the work
		return nil
	})
}
