package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/seal"
)

const (
	// journalLife is how long an entry is kept at least, unless there are more
	// than journalCount after it, or more than journalBytes of them.
	journalLife  = 10 * time.Minute
	journalCount = 2048
	journalBytes = 16 << 20
	// maxEntry bounds an entry as sealed, and maxBody as it was.
	maxEntry, maxBody = 1 << 20, 4 << 20
	// maxQueued is how many entries wait to be appended, and maxQueuedBytes how
	// large they are together.
	maxQueued, maxQueuedBytes = 4096, 32 << 20
	// maxBatch is how many entries one call appends, and batchBytes how many
	// bytes are enough for it.
	maxBatch, batchBytes = 64, 1 << 20
	// pageBytes is how much one call reads.
	pageBytes = 4 << 20
)

// Entry is one entry of a journal.
type Entry struct {
	// At is the entry's version, and Before that of the one before it: between
	// the two nothing happened. Before is less than At.
	Before, At uint64
	// Was and Is are sums of all that the appender knew before the entry and after
	// it. Where what was is not what is by the entry before, one of the two
	// appenders had missed something.
	Was, Is uint64
	// Body is what happened. It is shared: read it only.
	Body []byte
}

// JournalConfig says what a journal is of. All is required.
type JournalConfig struct {
	// Name is the service's, in keys and metrics.
	Name string
	// Seal closes what goes to Redis.
	Seal seal.Keys
	// Metrics counts entries.
	Metrics prometheus.Registerer
	// Redis is what replicas share. The journal does not own it.
	Redis *Redis
}

// Journal keeps what happened lately for all replicas of a service: streams of
// entries, each in the order of its versions. Every replica appends what it sees;
// what was appended already stays as it is. It is safe for concurrent use.
//
// A journal is a help and never needed. Entries may be missing, since Redis was
// away, full or flushed, changed masters, or had other clients; what is missing
// is never passed over, since each entry says what was before it.
type Journal struct {
	redis   *Redis
	prefix  string
	sealer  *seal.Sealer
	entries *prometheus.CounterVec

	queue  chan queued
	queued atomic.Int64 // bytes
}

type queued struct {
	stream string
	Entry
}

// The results of entries.
const (
	entryAppended = "appended" // or was there already
	entryDropped  = "dropped"  // Redis was away, or slower than what happened
	entryFailed   = "failed"
)

// NewJournal gives a journal. Entries are appended while Run does.
func NewJournal(cfg JournalConfig) (*Journal, error) {
	if cfg.Name == "" || cfg.Redis == nil || cfg.Metrics == nil {
		return nil, errors.New("making a journal: a name, Redis or registerer is missing")
	}
	// The purpose says which form entries have: one of another form does not open.
	sealer, err := seal.New(cfg.Seal, "journal of sums "+cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("making a journal: %w", err)
	}
	j := &Journal{redis: cfg.Redis, prefix: keyPrefix(cfg.Name) + "{log:", sealer: sealer, queue: make(chan queued, maxQueued)}
	j.entries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_cache_journal_entries_total", ConstLabels: prometheus.Labels{"cache": cfg.Name},
		Help: "Entries of the journal in Redis by this process: appended by it or another, dropped while Redis was away or slow, or failed.",
	}, []string{"result"})
	for _, r := range []string{entryAppended, entryDropped, entryFailed} {
		j.entries.WithLabelValues(r)
	}
	return j, register(cfg.Metrics, j.entries)
}

// Append has an entry appended to a stream soon. It waits for nothing: what
// cannot be appended is missing.
func (j *Journal) Append(stream string, e Entry) {
	size := int64(len(e.Body))
	if !j.redis.Up() || size > maxBody || j.queued.Load()+size > maxQueuedBytes {
		j.entries.WithLabelValues(entryDropped).Inc()
		return
	}
	j.queued.Add(size)
	select {
	case j.queue <- queued{stream, e}:
	default:
		j.queued.Add(-size)
		j.entries.WithLabelValues(entryDropped).Inc()
	}
}

// Run appends until ctx ends.
func (j *Journal) Run(ctx context.Context) {
	var held *queued // begins the next batch
	for {
		if held == nil {
			select {
			case <-ctx.Done():
				return
			case q := <-j.queue:
				held = &q
			}
		}
		held = j.batch(ctx, *held)
	}
}

// batch appends an entry and those behind it in the queue, as far as they are of
// one stream, and gives the one after them.
func (j *Journal) batch(ctx context.Context, first queued) (next *queued) {
	all, size := []Entry{first.Entry}, len(first.Body)
	for next == nil && len(all) < maxBatch && size < batchBytes {
		select {
		case q := <-j.queue:
			if q.stream != first.stream {
				next = &q
				continue
			}
			all, size = append(all, q.Entry), size+len(q.Body)
			continue
		default:
		}
		break
	}
	j.queued.Add(-int64(size))
	result := entryAppended
	if err := j.append(ctx, first.stream, all); err != nil {
		if result = entryFailed; !j.redis.Up() {
			result = entryDropped
		}
		slog.DebugContext(ctx, "entries of a journal were not appended", "stream", first.stream, "error", err)
	}
	j.entries.WithLabelValues(result).Add(float64(len(all)))
	return next
}

func (j *Journal) append(ctx context.Context, stream string, all []Entry) error {
	key := j.key(stream)
	args, size := []any{journalLife.Milliseconds(), journalCount, journalBytes}, 0
	for _, e := range all {
		id := idOf(e.At)
		if sealed := j.seal(key, id, e); len(sealed) <= maxEntry {
			args, size = append(args, id, sealed), size+len(sealed)
		}
	}
	_, err := j.redis.ask(ctx, size, appendScript, []string{key}, args...)
	return err
}

// Read gives what was appended to a stream after a version, in order and without
// a gap: where something is missing, does not open, or was missed by the one who
// appended it or the entry before, it ends. It also ends with
// the entry that makes it more than journalBytes: entries are kept by their size
// as packed, which says little about what they unpack to.
func (j *Journal) Read(ctx context.Context, stream string, after uint64) ([]Entry, error) {
	key := j.key(stream)
	var all []Entry
	for reached, size := after, 0; len(all) < journalCount; {
		reply, err := j.redis.ask(ctx, pageBytes, entriesScript, []string{key}, "("+idOf(reached), pageBytes, journalCount, maxEntry)
		if err != nil {
			return nil, err
		}
		page, ok := reply.([]any)
		if !ok || len(page) == 0 {
			break
		}
		before := len(all)
		for i := 0; i+1 < len(page); i += 2 {
			e, ok := j.entry(key, page[i], page[i+1])
			if !ok || e.Before > reached || e.At <= reached || len(all) > 0 && e.Was != all[len(all)-1].Is {
				return all, nil // what follows has a gap before it
			}
			all, reached, size = append(all, e), e.At, size+len(e.Body)
			if size >= journalBytes {
				return all, nil
			}
		}
		if len(all) == before {
			break
		}
	}
	return all, nil
}

func (j *Journal) key(stream string) string { return j.prefix + stream + "}" }

// idOf is the id that an entry has in Redis.
func idOf(version uint64) string { return strconv.FormatUint(version, 10) + "-0" }

// place binds a sealed entry to its stream and version.
func place(key, id string) string { return key + "\x00" + id }

// entryHead is how many bytes an entry has besides its body.
const entryHead = 3 * 8

func (j *Journal) seal(key, id string, e Entry) []byte {
	plain := make([]byte, 0, entryHead+s2.MaxEncodedLen(len(e.Body)))
	for _, n := range []uint64{e.Before, e.Was, e.Is} {
		plain = binary.BigEndian.AppendUint64(plain, n)
	}
	plain = append(plain, s2.Encode(nil, e.Body)...)
	return j.sealer.Seal(make([]byte, 0, len(plain)+seal.Overhead), plain, place(key, id))
}

// entry reads what another replica appended, or whoever can write to Redis: then
// it is none.
func (j *Journal) entry(key string, id, sealed any) (e Entry, ok bool) {
	idText, ok1 := id.(string)
	box, ok2 := sealed.(string)
	version, ok3 := strings.CutSuffix(idText, "-0")
	at, err := strconv.ParseUint(version, 10, 64)
	if !ok1 || !ok2 || !ok3 || err != nil {
		return Entry{}, false
	}
	plain, err := j.sealer.Open(nil, []byte(box), place(key, idText))
	if err != nil {
		return Entry{}, false
	}
	if len(plain) < entryHead {
		return Entry{}, false
	}
	packed := plain[entryHead:]
	if size, err := s2.DecodedLen(packed); err != nil || size > maxBody {
		return Entry{}, false
	}
	e = Entry{Before: binary.BigEndian.Uint64(plain), At: at, Was: binary.BigEndian.Uint64(plain[8:]), Is: binary.BigEndian.Uint64(plain[16:])}
	e.Body, err = s2.Decode(nil, packed)
	return e, err == nil
}
