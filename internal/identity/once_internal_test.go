package identity

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestUsedIdentitiesAreRememberedUntilTheyEndAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, end := new(used), time.Now().Add(MaxLifetime)
		first := func(id string) bool {
			t.Helper()
			ok, err := u.First(t.Context(), id, end)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !first("a") || first("a") || !first("b") {
			t.Fatal("an id is first once")
		}
		time.Sleep(MaxLifetime)
		if first("a") {
			t.Error("forgotten while it is still good")
		}
		time.Sleep(time.Second)
		end = time.Now().Add(MaxLifetime)
		if !first("c") || len(u.ids) != 1 || len(u.queue) != 1 {
			t.Errorf("%d ids and %d in the queue are left of one", len(u.ids), len(u.queue))
		}
	})
}

func TestMoreWritesThanAReplicaRemembersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, end := new(used), time.Now().Add(MaxLifetime)
		for i := range maxUsed {
			if ok, err := u.First(t.Context(), strconv.Itoa(i), end); !ok || err != nil {
				t.Fatal(i, ok, err)
			}
		}
		if ok, err := u.First(t.Context(), "more", end); ok || !errors.Is(err, errTooManyUsed) {
			t.Errorf("%v %v", ok, err)
		}
		if ok, err := u.First(t.Context(), "7", end); ok || err != nil {
			t.Errorf("one that was used: %v %v", ok, err)
		}
		time.Sleep(MaxLifetime + time.Second)
		if ok, err := u.First(t.Context(), "more", time.Now().Add(MaxLifetime)); !ok || err != nil {
			t.Errorf("when they are over: %v %v", ok, err)
		}
	})
}
