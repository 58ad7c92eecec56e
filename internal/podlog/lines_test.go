package podlog

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

const (
	stamp1 = "2026-11-29T10:00:00.100000000Z "
	stamp2 = "2026-11-29T10:00:00.200000000Z "
	stamp3 = "2026-11-29T10:00:00.300000000+01:00 "
)

// taken gives lines that have seen a whole text at once.
func taken(t *testing.T, text string) *lines {
	t.Helper()
	l := &lines{}
	if n, ok := l.take([]byte(text)); !ok || n != len(text) {
		t.Fatalf("of %q it took %d, %v", text, n, ok)
	}
	return l
}

func TestWhatIsNoLineOfALogIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		sure int
		ok   bool
	}{
		"nothing":                          {"", 0, true},
		"a line":                           {stamp1 + "a\n", len(stamp1) + 2, true},
		"an empty line":                    {stamp1 + "\n", len(stamp1) + 1, true},
		"a line with an offset":            {stamp3 + "a\n", len(stamp3) + 2, true},
		"a line without its end":           {stamp1 + "a", len(stamp1) + 1, true},
		"a time alone":                     {stamp1, len(stamp1), true},
		"a time without its space":         {stamp1[:len(stamp1)-1], 0, true},
		"half a time":                      {stamp1[:9], 0, true},
		"half a time after a line":         {stamp1 + "a\n" + stamp2[:9], len(stamp1) + 2, true},
		"a carriage return":                {stamp1 + "10%\r20%\r\n", len(stamp1) + 9, true},
		"a sentence":                       {"unable to retrieve container logs for containerd://x", 0, false},
		"a sentence after a line":          {stamp1 + "a\nrpc error: code = NotFound", len(stamp1) + 2, false},
		"an empty line without a time":     {stamp1 + "a\n\n", len(stamp1) + 2, false},
		"a date that is no time":           {"2026-11-29 10:00:00 lost\n", 0, false},
		"a time with no end to its digits": {"2026-11-29T10:00:00." + strings.Repeat("1", 40), 0, false},
		"a time that ends early":           {"2026-11-29 ", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var l lines
			if n, ok := l.take([]byte(tc.text)); n != tc.sure || ok != tc.ok {
				t.Errorf("it is sure of %d, %v; want %d, %v", n, ok, tc.sure, tc.ok)
			}
		})
	}
}

func TestALogIsComparedWithItsLastLine(t *testing.T) {
	long := strings.Repeat("x", 3*record)
	for name, tc := range map[string]struct {
		log, last string
		covers    bool
	}{
		"nothing of nothing":                     {"", "", true},
		"more than there was":                    {stamp1 + "a\n", "", true},
		"the same line":                          {stamp1 + "a\n" + stamp2 + "b\n", stamp2 + "b\n", true},
		"a later line":                           {stamp1 + "a\n" + stamp2 + "b\n", stamp1 + "a\n", true},
		"a line that has grown":                  {stamp1 + "a.....", stamp1 + "a..", true},
		"nothing of a line":                      {"", stamp1 + "a\n", false},
		"an earlier line":                        {stamp1 + "a\n", stamp2 + "b\n", false},
		"an earlier line of the same words":      {stamp1 + "done\n", stamp2 + "done\n", false},
		"half of the line":                       {stamp1 + "a", stamp1 + "ab\n", false},
		"all but the line's end":                 {stamp1 + "ab", stamp1 + "ab\n", false},
		"a long line by its last record":         {stamp1 + long + "the end\n", stamp2 + "the end\n", true},
		"a long line cut before its last record": {stamp1 + long, stamp2 + "the end\n", false},
		"a long line cut within its last record": {stamp1 + long + "the e", stamp2 + "the end\n", false},
		"a long last record":                     {stamp1 + long + long + "\n", stamp2 + long + "\n", true},
		"a last record without words":            {stamp1 + long, stamp2 + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := taken(t, tc.log).covers(taken(t, tc.last)); got != tc.covers {
				t.Errorf("got %v, want %v", got, tc.covers)
			}
		})
	}
}

func TestTheLastLineIsKnown(t *testing.T) {
	l := taken(t, stamp1+"a\n"+stamp3+"bc")
	want := time.Date(2026, 11, 29, 9, 0, 0, 300_000_000, time.UTC)
	if !l.at().Equal(want) || l.length != len(stamp3)+2 {
		t.Errorf("it is of %s, %d bytes", l.at(), l.length)
	}
	if got := string(l.end[:l.ends]); got != stamp1+"a\n"+stamp3+"bc" {
		t.Errorf("its end is %q", got)
	}
}

// FuzzLines holds that it makes no difference in which pieces a log comes.
func FuzzLines(f *testing.F) {
	f.Add([]byte(stamp1+"a\n"+stamp2+"b\n"), byte(7))
	f.Add([]byte(stamp1+strings.Repeat("x", 2*keptEnd)+"\n"+stamp2), byte(250))
	f.Add([]byte(stamp1+"a\nlost"), byte(1))
	f.Fuzz(func(t *testing.T, text []byte, piece byte) {
		var whole, parts lines
		sure, ok := whole.take(text)
		var held []byte
		got, good := 0, true
		for rest := text; good && len(rest) > 0; {
			n := min(int(piece)+1, len(rest))
			held = append(held, rest[:n]...)
			rest = rest[n:]
			var taken int
			taken, good = parts.take(held)
			got += taken
			held = append([]byte(nil), held[taken:]...)
			if good && len(held) > maxStamp {
				t.Fatalf("%d bytes are held back", len(held))
			}
		}
		if got != sure || good != ok || whole.length != parts.length || whole.ended != parts.ended ||
			!bytes.Equal(whole.head[:whole.heads], parts.head[:parts.heads]) || !bytes.Equal(whole.end[:whole.ends], parts.end[:parts.ends]) {
			t.Fatalf("whole: %d %v %+v\nin parts: %d %v %+v", sure, ok, whole, got, good, parts)
		}
		if good && !whole.covers(&parts) {
			t.Fatal("a log does not cover its own last line")
		}
	})
}
