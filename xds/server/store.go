package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/xds/translate"
)

// Store keeps the last good snapshot in a folder. One process uses a folder.
type Store struct {
	dir    string
	usable func(*translate.Resources) error // nil takes all
}

// NewStore gives the store of a folder, which is made when it is missing.
func NewStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing the folder of the last good snapshot: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Only has Load give no snapshot against which the function says something: an
// option that was set since may forbid it. Call it before anything is loaded.
func (s *Store) Only(usable func(*translate.Resources) error) { s.usable = usable }

// ErrNoSnapshot says that no snapshot was ever stored.
var ErrNoSnapshot = errors.New("no snapshot is stored")

const (
	storeFile = "last-good.json"
	// maxStored bounds what is read back: a file of another program, or one
	// that was blown up, must not take the memory of the pod.
	maxStored = 16 << 20
)

// stored is the file: readable, and with the version of what it holds.
type stored struct {
	Version   string            `json:"version"`
	Listeners []json.RawMessage `json:"listeners"`
	Routes    []json.RawMessage `json:"routes"`
	Clusters  []json.RawMessage `json:"clusters"`
	Secrets   []json.RawMessage `json:"secrets,omitempty"` // names of files
}

// Save puts a snapshot in the place of the one before, whole or not at all.
func (s *Store) Save(snap *Snapshot) error {
	raw, err := encode(snap)
	if err != nil {
		return fmt.Errorf("storing snapshot %s: %w", snap.version, err)
	}
	if err := s.replace(raw); err != nil {
		return fmt.Errorf("storing snapshot %s: %w", snap.version, err)
	}
	return nil
}

// Load gives the stored snapshot, or ErrNoSnapshot. A file whose content is
// not what its version says is an error.
func (s *Store) Load() (*Snapshot, error) {
	f, err := os.Open(filepath.Join(s.dir, storeFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, fmt.Errorf("loading the stored snapshot: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxStored+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("loading the stored snapshot: %w", err)
	}
	if len(raw) > maxStored {
		return nil, fmt.Errorf("loading the stored snapshot: larger than %d bytes", maxStored)
	}
	snap, err := decode(raw)
	if err == nil && s.usable != nil {
		err = s.usable(snap.resources)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the stored snapshot: %w", err)
	}
	return snap, nil
}

// replace writes beside the file and renames, with the data on disk before the
// name is.
func (s *Store) replace(raw []byte) (err error) {
	f, err := os.CreateTemp(s.dir, storeFile+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(s.dir, storeFile))
}

func encode(snap *Snapshot) ([]byte, error) {
	out := stored{Version: snap.version}
	err := errors.Join(
		encodeList(&out.Listeners, snap.resources.Listeners),
		encodeList(&out.Routes, snap.resources.Routes),
		encodeList(&out.Clusters, snap.resources.Clusters),
		encodeList(&out.Secrets, snap.resources.Secrets),
	)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(out, "", " ")
}

func encodeList[T proto.Message](out *[]json.RawMessage, in []T) error {
	for _, m := range in {
		raw, err := protojson.Marshal(m)
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		*out = append(*out, raw)
	}
	return nil
}

func decode(raw []byte) (*Snapshot, error) {
	var in stored
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	res := &translate.Resources{}
	var err error
	if res.Listeners, err = decodeList(in.Listeners, func() *listenerv3.Listener { return &listenerv3.Listener{} }); err != nil {
		return nil, err
	}
	if res.Routes, err = decodeList(in.Routes, func() *routev3.RouteConfiguration { return &routev3.RouteConfiguration{} }); err != nil {
		return nil, err
	}
	if res.Clusters, err = decodeList(in.Clusters, func() *clusterv3.Cluster { return &clusterv3.Cluster{} }); err != nil {
		return nil, err
	}
	if res.Secrets, err = decodeList(in.Secrets, func() *tlsv3.Secret { return &tlsv3.Secret{} }); err != nil {
		return nil, err
	}
	snap, err := NewSnapshot(res)
	if err != nil {
		return nil, err
	}
	if snap.version != in.Version {
		return nil, fmt.Errorf("the content has version %s, not %q as it says", snap.version, in.Version)
	}
	return snap, nil
}

func decodeList[T interface {
	proto.Message
	ValidateAll() error
}](in []json.RawMessage, empty func() T) ([]T, error) {
	var out []T
	for _, raw := range in {
		m := empty()
		if err := protojson.Unmarshal(raw, m); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		if err := m.ValidateAll(); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		out = append(out, m)
	}
	return out, nil
}
