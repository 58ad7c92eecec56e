package authn

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is what sort of caller one is.
type Kind string

// The kinds of callers, as whoami names them.
const (
	ServiceAccount Kind = "serviceAccount"
	Person         Kind = "person"
	User           Kind = "user"
)

const (
	serviceAccountPrefix = "system:serviceaccount:"
	anonymous            = "system:anonymous"
	maxUsername          = 1024
)

// Facts are what a verified token says of its caller.
type Facts struct {
	Username string
	UID      string
	Groups   []string
	Extra    map[string][]string
	// Audiences are those for which the token was accepted.
	Audiences []string
}

// Caller is an authenticated caller. It does not change and is shared: read it
// only.
type Caller struct {
	Facts
	Kind Kind

	subject, whole Digest
}

// Digest stands for a set of facts where they serve as a key.
type Digest [sha256.Size]byte

// NewClusterCaller makes a caller of what the cluster said about a token. It
// refuses names that are nobody's: an empty or anonymous one, one that text
// cannot carry safely, and a person's, which the cluster has no say in.
func NewClusterCaller(f Facts) (*Caller, error) {
	switch {
	case f.Username == "":
		return nil, errors.New("no user name")
	case f.Username == anonymous:
		return nil, errors.New("the user is anonymous")
	case strings.HasPrefix(f.Username, PersonPrefix):
		return nil, errors.New("a person's user name from a token that is not a person's")
	case len(f.Username) > maxUsername || !printable(f.Username):
		return nil, errors.New("a user name that cannot be written down")
	}
	kind := User
	if strings.HasPrefix(f.Username, serviceAccountPrefix) {
		kind = ServiceAccount
	}
	return newCaller(f, kind), nil
}

// Restore makes the caller again that these facts were taken from. It checks
// nothing: the facts come from what authz itself signed.
func Restore(f Facts, kind Kind) *Caller { return newCaller(f, kind) }

func newCaller(f Facts, kind Kind) *Caller {
	c := &Caller{Facts: f, Kind: kind}
	d := newDigester()
	d.text(f.Username)
	d.text(f.UID)
	d.list(f.Groups)
	d.number(len(f.Extra))
	for _, k := range slices.Sorted(maps.Keys(f.Extra)) {
		d.text(k)
		d.list(f.Extra[k])
	}
	c.subject = d.sum()
	d.text(string(kind))
	d.list(f.Audiences)
	c.whole = d.sum()
	return c
}

// Everyone is the group of all who were authenticated, by the API server or as a
// person.
const Everyone = "system:authenticated"

// ImpliedGroups gives all the groups of a caller whose name implies them: a
// ServiceAccount's, which the cluster puts it into, and a person's. ok is false
// for all others.
func ImpliedGroups(username string) (groups []string, ok bool) {
	if login, ok := strings.CutPrefix(username, PersonPrefix); ok && login != "" {
		return []string{Everyone}, true
	}
	rest, ok := strings.CutPrefix(username, serviceAccountPrefix)
	namespace, name, both := strings.Cut(rest, ":")
	if !ok || !both || namespace == "" || name == "" || strings.Contains(name, ":") {
		return nil, false
	}
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, Everyone}, true
}

// Subject stands for everything of the caller that an access review is asked
// about: user, uid, groups and extra. Two callers that differ in any have
// different ones.
func (c *Caller) Subject() Digest { return c.subject }

// Whole stands for everything known of the caller.
func (c *Caller) Whole() Digest { return c.whole }

// Bytes is about how much memory the caller's facts take.
func (c *Caller) Bytes() int {
	const header = 16 // of a string
	n := 512 + len(c.Username) + len(c.UID)
	list := func(l []string) {
		for _, s := range l {
			n += header + len(s)
		}
	}
	list(c.Groups)
	list(c.Audiences)
	for k, v := range c.Extra {
		n += 4*header + len(k)
		list(v)
	}
	return n
}

// printable says whether a name can stand in a header, a log line and a
// message without changing what is around it.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// digester hashes values with their lengths, so that no two different sets of
// facts read the same.
type digester struct{ h hash.Hash }

func newDigester() digester { return digester{sha256.New()} }

func (d digester) number(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.h.Write(b[:])
}

func (d digester) text(s string) {
	d.number(len(s))
	d.h.Write([]byte(s))
}

func (d digester) list(l []string) {
	d.number(len(l))
	for _, s := range l {
		d.text(s)
	}
}

func (d digester) sum() Digest { return Digest(d.h.Sum(nil)) }
