package main

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jucgo/locks/lockstest/explore"
)

func TestNoScheduleLooksAPriceUpTwice(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		lookups := 0
		c := &Cache{lookUp: func(context.Context, string) (int, error) {
			lookups++
			return 7, nil
		}}
		for range 2 {
			x.Go("asks", func() {
				price, err := c.Price(x.Context(), "nut")
				x.Check(price == 7 && err == nil, "the price is %d, %v", price, err)
			})
		}
		x.Wait()
		x.Check(lookups == 1, "%d lookups", lookups)
	})
}

func TestNoScheduleKeepsAPriceFromBeforeForget(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var now atomic.Int32
		c := &Cache{lookUp: func(context.Context, string) (int, error) { return int(now.Load()), nil }}
		x.Go("asks", func() { _, _ = c.Price(x.Context(), "nut") })
		x.Go("changes", func() {
			now.Store(2)
			c.Forget("nut")
		})
		x.Wait()
		price, err := c.Price(x.Context(), "nut")
		x.Check(price == 2 && err == nil, "the price is %d, %v", price, err)
	})
}
