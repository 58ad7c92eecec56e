package server

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/xds/translate"
)

// Snapshot is a consistent set of resources. It is never changed once made.
type Snapshot struct {
	version   string
	resources *translate.Resources
	cache     *cachev3.Snapshot
}

// NewSnapshot makes a snapshot of resources, which it keeps and which must not
// be changed any more. Resources that refer to what is not among them are an
// error.
func NewSnapshot(res *translate.Resources) (*Snapshot, error) {
	version, err := contentVersion(res)
	if err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	c, err := cachev3.NewSnapshot(version, map[resourcev3.Type][]types.Resource{
		resourcev3.ListenerType: resourceList(res.Listeners),
		resourcev3.RouteType:    resourceList(res.Routes),
		resourcev3.ClusterType:  resourceList(res.Clusters),
	})
	if err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	if err := c.Consistent(); err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	// Made here and not when the first Envoy asks, so that a fault in it is
	// found before the snapshot is taken.
	if err := c.ConstructVersionMap(); err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	return &Snapshot{version: version, resources: res, cache: c}, nil
}

// Version is a hash of the content: equal for equal resources, in any process.
func (s *Snapshot) Version() string { return s.version }

func resourceList[T types.Resource](in []T) []types.Resource {
	out := make([]types.Resource, len(in))
	for i, r := range in {
		out[i] = r
	}
	return out
}

func contentVersion(res *translate.Resources) (string, error) {
	h := sha256.New()
	if err := hashAll(h, "listener", res.Listeners); err != nil {
		return "", err
	}
	if err := hashAll(h, "route", res.Routes); err != nil {
		return "", err
	}
	if err := hashAll(h, "cluster", res.Clusters); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashAll writes each message with its kind and length before it, so that no
// two lists give the same bytes.
func hashAll[T proto.Message](h hash.Hash, kind string, messages []T) error {
	for _, m := range messages {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return fmt.Errorf("hashing a %s: %w", kind, err)
		}
		h.Write([]byte(kind))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(raw))))
		h.Write(raw)
	}
	return nil
}
