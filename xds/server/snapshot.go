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
	types     map[resourcev3.Type]string // the version of each type's resources
	resources *translate.Resources
	cache     *cachev3.Snapshot
}

// NewSnapshot makes a snapshot of resources, which it keeps and which must not
// be changed any more. Resources that refer to what is not among them are an
// error.
func NewSnapshot(res *translate.Resources) (*Snapshot, error) {
	s := &Snapshot{resources: res, types: map[resourcev3.Type]string{}, cache: &cachev3.Snapshot{}}
	if err := s.fill(); err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	if err := s.cache.Consistent(); err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	// Made here and not when the first Envoy asks, so that a fault in it is
	// found before the snapshot is taken.
	if err := s.cache.ConstructVersionMap(); err != nil {
		return nil, fmt.Errorf("making a snapshot: %w", err)
	}
	return s, nil
}

// fill puts the resources into the cache's form, each type with a version of
// its own: an Envoy's word on a response is then about just what was in it.
func (s *Snapshot) fill() error {
	all := sha256.New()
	for _, one := range []struct {
		typeURL resourcev3.Type
		in      types.ResponseType
		list    []types.Resource
	}{
		{resourcev3.ListenerType, types.Listener, resourceList(s.resources.Listeners)},
		{resourcev3.RouteType, types.Route, resourceList(s.resources.Routes)},
		{resourcev3.ClusterType, types.Cluster, resourceList(s.resources.Clusters)},
		{resourcev3.SecretType, types.Secret, resourceList(s.resources.Secrets)},
	} {
		if one.typeURL == resourcev3.SecretType && len(one.list) == 0 {
			continue // no Envoy asks for it, so none would ever say that it took it
		}
		version, err := contentVersion(one.list)
		if err != nil {
			return fmt.Errorf("hashing %s: %w", one.typeURL, err)
		}
		s.types[one.typeURL] = version
		s.cache.Resources[one.in] = cachev3.NewResources(version, one.list)
		all.Write([]byte(version))
	}
	s.version = shortHash(all)
	return nil
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

// contentVersion hashes each message with its length before it, so that no two
// lists give the same bytes.
func contentVersion(list []types.Resource) (string, error) {
	h := sha256.New()
	for _, m := range list {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return "", err
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(raw))))
		h.Write(raw)
	}
	return shortHash(h), nil
}

func shortHash(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:16] }
