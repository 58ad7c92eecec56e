package kubelist

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// listOf makes a list of objects named namespace/name.
func listOf(t testing.TB, size int, names ...string) *List {
	t.Helper()
	l := newList()
	for _, n := range names {
		namespace, name, _ := strings.Cut(n, "/")
		raw := fmt.Sprintf(`{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","metadata":{"name":%q,"namespace":%q,"uid":"u-%s","resourceVersion":"1"},"spec":{"pad":%q}}`,
			name, namespace, name, strings.Repeat("x", size))
		if err := pipelineRuns.add(l, []byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func elements(l *List) string { return string(bytes.Join(l.Elements(), nil)) }

func TestElementsAreAllObjectsWithCommasBetween(t *testing.T) {
	for _, tc := range []struct {
		name       string
		count, pad int
		chunks     int
	}{
		{"none", 0, 0, 0},
		{"one", 1, 10, 1},
		{"a few in one piece", 5, 10, 1},
		{"more than fits into one piece", 5, chunkSize / 2, 5},
		{"each larger than a piece", 3, 2 * chunkSize, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var names, each []string
			for i := range tc.count {
				names = append(names, fmt.Sprintf("ns/n%d", i))
			}
			l := listOf(t, tc.pad, names...)
			for i := range l.Len() {
				each = append(each, string(l.JSON(i)))
			}
			if l.Len() != tc.count || len(l.chunks) != tc.chunks {
				t.Errorf("%d objects in %d pieces", l.Len(), len(l.chunks))
			}
			if got, want := elements(l), strings.Join(each, ","); got != want {
				t.Errorf("%d bytes of elements, want %d", len(got), len(want))
			}
			if least := len(elements(l)) - len(l.chunks); l.Size() < least {
				t.Errorf("size %d for %d bytes", l.Size(), least)
			}
		})
	}
}

// rule: R285
func TestSortedIsByNamespaceAndThenName(t *testing.T) {
	// In the order of the cluster, where "a-b/z" comes before "a/b".
	cluster := []string{"a-b/z", "a/b", "a/b-c", "a/c", "b/a"}
	want := []string{"a/b", "a/b-c", "a/c", "a-b/z", "b/a"}
	for range 20 {
		rand.Shuffle(len(cluster), func(i, j int) { cluster[i], cluster[j] = cluster[j], cluster[i] })
		l := listOf(t, 0, cluster...)
		var got []string
		for _, i := range l.Sorted() {
			got = append(got, l.Meta(i).Namespace+"/"+l.Meta(i).Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v sorted is %v", cluster, got)
		}
	}
}

func TestADecodedListIsTheEncodedOne(t *testing.T) {
	for name, l := range map[string]*List{
		"none":   listOf(t, 0),
		"a few":  listOf(t, 10, "a/b", "a-b/c", "a/d"),
		"larger": listOf(t, chunkSize/3, "a/b", "a/c", "a/d", "a/e", "a/f"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(l.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if got.Len() != l.Len() || elements(got) != elements(l) {
				t.Fatalf("%d objects", got.Len())
			}
			for i := range l.Len() {
				if got.Meta(i) != l.Meta(i) || !bytes.Equal(got.JSON(i), l.JSON(i)) {
					t.Errorf("object %d is %+v, want %+v", i, got.Meta(i), l.Meta(i))
				}
			}
		})
	}
}

func TestWhatIsNoEncodedListIsRefused(t *testing.T) {
	good := listOf(t, 3, "a/b", "a/c").Encode()
	for i := range good {
		if _, err := Decode(good[:i]); !errors.Is(err, errCodec) {
			t.Fatalf("the first %d of %d bytes: %v", i, len(good), err)
		}
	}
	for name, raw := range map[string][]byte{
		"more behind its end":         append(slices.Clone(good), 0),
		"a count that does not fit":   {0xff, 0xff, 0xff, 0xff, 0x07},
		"a number that is too large":  {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"a number that does not end":  {0x80},
		"a string that does not fit":  {1, 5, 'a', 0, 0, 0, 0},
		"an object that does not fit": {1, 0, 0, 0, 0, 9, '{'},
	} {
		if _, err := Decode(raw); !errors.Is(err, errCodec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(listOf(f, 3, "a/b", "a/c").Encode())
	f.Add([]byte{0})
	f.Add([]byte{1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := Decode(raw)
		if err != nil {
			return
		}
		again, err := Decode(l.Encode())
		if err != nil || again.Len() != l.Len() || elements(again) != elements(l) {
			t.Fatalf("decodes into %d objects and, once more, into %v, %v", l.Len(), again, err)
		}
	})
}
