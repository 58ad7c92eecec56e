package cache

import (
	"context"
	"crypto/sha256"
	_ "embed" // the script
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed once.lua
	onceText   string
	onceScript = redis.NewScript(onceText)
)

// Once remembers ids for all replicas of a service. Unlike a cache it cannot do
// without Redis: while Redis is away nobody can tell, and each question is an
// error. A Redis that may evict, or one that lost its last second in a change of
// masters, can forget an id before its end; then it is first again.
//
// It is an identity.Once.
type Once struct {
	redis   *Redis
	service string
}

// NewOnce gives the ids that were used in a service.
func NewOnce(r *Redis, service string) *Once { return &Once{redis: r, service: service} }

// First says whether id is used for the first time by any replica, and
// remembers it until end.
func (o *Once) First(ctx context.Context, id string, end time.Time) (bool, error) {
	life := max(time.Until(end), minLife)
	// A digest: an id is from outside and a key has a form.
	sum := sha256.Sum256([]byte(id))
	key := keyPrefix(o.service) + "{used:" + hex.EncodeToString(sum[:16]) + "}"
	ctx, span := o.redis.begin(ctx)
	defer span.End()
	reply, err := o.redis.use(ctx, onceScript, []string{key}, life.Milliseconds())
	if err != nil {
		return false, err
	}
	switch reply {
	case int64(1):
		return true, nil
	case int64(0):
		return false, nil
	}
	return false, fmt.Errorf("asking redis: a reply of %T", reply)
}
