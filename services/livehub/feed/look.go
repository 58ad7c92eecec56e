package feed

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/kubelist"
)

// look looks for what happened to one kind, for a past.
type look struct {
	past *past
	kind Kind
	// seen is how far it has come. Its sum is the cluster's once sure is set; until
	// then it is a viewer's word.
	seen Place
	sure bool
	// objects holds the version of each object that existed at seen, once a watch
	// needs them.
	objects map[string]uint64
}

// arrived says whether the feed's own changes follow what was seen. Equal sums
// mean equal objects: whatever happened in between was undone.
func (l *look) arrived() bool {
	until := l.past.until[l.kind]
	if l.seen.Version < until.Version && (!l.sure || l.seen.Sum != until.Sum) {
		return false
	}
	l.past.pass(l.kind, max(l.seen.Version, until.Version))
	return true
}

// read takes the entries of the journal that replicas share.
func (l *look) read(entries []cache.Entry) error {
	until := l.past.until[l.kind]
	for _, e := range entries {
		if e.At > until.Version {
			// The feed tells the rest itself. Its changes are of its own cluster,
			// whichever cluster the journal is of.
			l.reaches(Place{l.seen.Version, e.Was})
			if !l.arrived() {
				return errPastDiffers
			}
			return nil
		}
		if err := l.add(e.Was, Place{e.At, e.Is}, e.Body); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) add(was uint64, is Place, body []byte) error {
	if err := l.past.add(l.kind, was, is, body); err != nil {
		return err
	}
	l.reaches(is)
	return nil
}

// reaches notes how far it has come, on the word of the cluster and not of a
// viewer.
func (l *look) reaches(place Place) {
	if !l.sure {
		l.past.prove(l.kind)
	}
	l.seen, l.sure = place, true
}

// watch opens one watch and follows it until the look has arrived. Before that it
// reads which objects existed where the watch begins, by name alone: a watch tells
// what happened, but not whether that is all.
func (l *look) watch(ctx context.Context, source Source) error {
	if err := l.know(ctx, source); err != nil || l.arrived() {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one, err := source.Watch(ctx, l.kind, kubelist.WatchFrom{ResourceVersion: strconv.FormatUint(l.seen.Version, 10), Timeout: pastWatch})
	if err != nil {
		return err
	}
	defer one.Close()
	for !l.arrived() {
		e, err := one.Next()
		if err == nil {
			err = l.take(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// know reads which objects existed at seen.
func (l *look) know(ctx context.Context, source Source) error {
	if l.objects != nil {
		return nil
	}
	names, err := source.ReadAt(ctx, l.kind, strconv.FormatUint(l.seen.Version, 10), true)
	if err != nil {
		return err
	}
	objects, sum := make(map[string]uint64, names.Len()), uint64(0)
	for i := range names.Len() {
		m := names.Meta(i)
		if objects[m.Name], err = parseVersion(m.ResourceVersion); err != nil {
			return err
		}
		sum += weigh(m.Name, objects[m.Name])
	}
	if l.sure && sum != l.seen.Sum {
		return errPastDiffers
	}
	l.objects = objects
	l.reaches(Place{l.seen.Version, sum})
	return nil
}

// take takes an event of a watch.
func (l *look) take(e kubelist.Event) error {
	version, err := parseVersion(e.ResourceVersion)
	if err != nil {
		return err
	}
	if version <= l.seen.Version {
		return nil
	}
	if e.Type == watch.Bookmark {
		l.seen.Version = version
		return nil
	}
	is := Place{version, l.seen.Sum}
	if old, there := l.objects[e.Name]; there {
		is.Sum -= weigh(e.Name, old)
	}
	var object []byte
	if delete(l.objects, e.Name); e.Type != watch.Deleted {
		object, l.objects[e.Name] = e.JSON, version
		is.Sum += weigh(e.Name, version)
	}
	body, err := writeBody(l.kind, e.Name, object)
	if err != nil {
		return err
	}
	return l.add(l.seen.Sum, is, body)
}
