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
	kind Index
	// at is where it has come to. What it says of what was known there holds once
	// sure is set: until then it is a viewer's word.
	at   Place
	sure bool
	// objects are the versions of those that there are at at, once a watch needs
	// them.
	objects map[string]uint64
}

// arrived says whether what the feed keeps follows. Where the same is known at
// both, whatever happened between has come to nothing.
func (l *look) arrived() bool {
	until := l.past.until[l.kind]
	if l.at.Version < until.Version && (!l.sure || l.at.Sum != until.Sum) {
		return false
	}
	l.past.pass(l.kind, max(l.at.Version, until.Version))
	return true
}

// read takes what replicas share.
func (l *look) read(entries []cache.Entry) error {
	until := l.past.until[l.kind]
	for _, e := range entries {
		if e.At > until.Version {
			// The rest is for the feed to tell: that is of its own cluster, whatever
			// happened to what the log is of.
			l.isAt(Place{l.at.Version, e.Was})
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
	l.isAt(is)
	return nil
}

// isAt notes where it has come to, as the cluster and not a viewer says.
func (l *look) isAt(at Place) {
	if !l.sure {
		l.past.prove(l.kind)
	}
	l.at, l.sure = at, true
}

// watch goes on by one watch until it has arrived. What there was where it
// begins is read before, by names alone: a watch tells what happened, and not
// whether that is all.
func (l *look) watch(ctx context.Context, source Source) error {
	if err := l.know(ctx, source); err != nil || l.arrived() {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one, err := source.Watch(ctx, l.kind, kubelist.WatchFrom{ResourceVersion: strconv.FormatUint(l.at.Version, 10), Timeout: pastWatch})
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

// know reads what there is at at.
func (l *look) know(ctx context.Context, source Source) error {
	if l.objects != nil {
		return nil
	}
	names, err := source.ReadAt(ctx, l.kind, strconv.FormatUint(l.at.Version, 10), true)
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
	if l.sure && sum != l.at.Sum {
		return errPastDiffers
	}
	l.objects = objects
	l.isAt(Place{l.at.Version, sum})
	return nil
}

// take takes an event of a watch.
func (l *look) take(e kubelist.Event) error {
	version, err := parseVersion(e.ResourceVersion)
	if err != nil {
		return err
	}
	if version <= l.at.Version {
		return nil
	}
	if e.Type == watch.Bookmark {
		l.at.Version = version
		return nil
	}
	is := Place{version, l.at.Sum}
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
	return l.add(l.at.Sum, is, body)
}
