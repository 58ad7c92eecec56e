package pods

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Time between two lines of a step at pace 1.
	shortestGap = 150 * time.Millisecond
	longestGap  = 900 * time.Millisecond
	// mostLines bounds what a step writes, however long it runs.
	mostLines = 5000
)

// text is what a step writes: line i at a time that depends on nothing but the step.
type text struct {
	seed  uint64
	begin time.Time
	gap   time.Duration
	words []string
}

func newText(seed uint64, begin time.Time, step string, of ...string) text {
	h := fnv.New64a()
	for _, w := range append(of, step) {
		_, _ = h.Write(append([]byte(w), 0)) // a hash never fails
	}
	t := text{seed: seed ^ h.Sum64(), begin: begin}
	t.gap = shortestGap + time.Duration(t.random(0).Int64N(int64(longestGap-shortestGap)))
	t.words = vocabulary()
	return t
}

func (t text) random(line int) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed, uint64(line))) //nolint:gosec // determinism is the point; nothing is secret
}

// at is when the line is written.
func (t text) at(line int) time.Time { return t.begin.Add(time.Duration(line) * t.gap) }

func (t text) line(step string, number int) string {
	if number == 0 {
		return "+ exec " + step
	}
	random := t.random(number)
	word := func() string { return t.words[random.IntN(len(t.words))] }
	switch random.IntN(6) {
	case 0:
		return fmt.Sprintf("[%d/%d] %s %s", number, number+random.IntN(40), word(), word())
	case 1:
		return fmt.Sprintf("ok  \t%s/%s\t%d.%03ds", word(), word(), random.IntN(4), random.IntN(1000))
	case 2:
		return fmt.Sprintf("\x1b[32m✓\x1b[0m %s %s (%d ms)", word(), word(), random.IntN(900))
	case 3:
		return fmt.Sprintf("level=info msg=%q %s=%08x", word()+" "+word(), word(), random.Uint32())
	case 4:
		return fmt.Sprintf("warning: %s: %s is deprecated, use %s", word(), word(), word())
	default:
		return fmt.Sprintf("%s %s: %d of %d", word(), word(), number, number+random.IntN(100))
	}
}

func vocabulary() []string {
	return []string{
		"cache", "layer", "module", "commit", "digest", "registry", "handler", "gate", "boarding", "passenger", "schema",
		"workspace", "artifact", "manifest", "signature", "coverage", "migration", "fixture", "client", "server",
	}
}

// addressOf is a Pod's address, of a range that no cluster uses.
func addressOf(uid types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // a hash never fails
	sum := h.Sum32()
	return fmt.Sprintf("198.18.%d.%d", sum>>8&0xff, 1+sum%254)
}
