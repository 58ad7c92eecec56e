package runs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// listed is a run of a list, and with what it is shown.
type listed struct {
	row     row
	created time.Time
	name    string   // of the PipelineRun
	homes   []string // see homes
	stored  time.Time
	own     bool         // it is in the Result of its uid
	run     packed       // of a full list
	tasks   []listedTask // likewise, in the order of their creation

	named    []string // the TaskRuns that the run says it made
	namesAll bool     // that could be read
}

// omitted is what a list is answered without: records that nobody can read, of
// which each would otherwise take the list away for as long as it is archived.
type omitted struct {
	records int
	first   error
}

// passOver says whether an error is about one record alone.
func (o *omitted) passOver(err error) bool {
	if !errors.Is(err, results.ErrBadRecord) {
		return false
	}
	if o.records++; o.first == nil {
		o.first = err
	}
	return true
}

// report counts what is left out, and logs it as one.
func (s *server) report(ctx context.Context, o *omitted) {
	if o.records == 0 {
		return
	}
	s.badRecords.Add(float64(o.records))
	slog.WarnContext(ctx, "records of the archive cannot be read, and are left out of a list", "records", o.records, "error", o.first)
}

// newest reads the newest finished runs, and nothing past the last of them that
// there can be.
func (s *server) newest(ctx context.Context, q query, in window, held *holding) ([]listed, error) {
	namespace := q.scope.Namespace
	if namespace == "" {
		namespace = "-"
	}
	read := s.archive.PipelineRunRows
	if q.full {
		read = s.archive.PipelineRuns
	}
	var left omitted
	defer s.report(ctx, &left)
	found := latest{most: q.limit}
	for rec, err := range read(ctx, namespace, in.since) {
		if err != nil {
			if left.passOver(err) {
				continue
			}
			return nil, err
		}
		if found.whole(rec.Stored) {
			break
		}
		if !in.shows(rec) || !found.wants(rec.Created) {
			continue
		}
		r, finished, err := readRun(rec)
		if err != nil {
			left.passOver(err)
			continue
		}
		if !finished {
			continue
		}
		one := q.listed(r)
		if q.full {
			if one.run, err = held.pack(rec.Value); err != nil {
				return nil, err
			}
			held.drop(found.add(one).run)
			continue
		}
		found.add(one)
	}
	return found.all(), nil
}

// listed gives a run as the query shows it.
func (q query) listed(r run) listed {
	one := listed{row: r.row, created: r.record.Created, stored: r.record.Stored, own: r.record.Result() == r.record.UID, name: r.object.Metadata.Name}
	if q.placed {
		one.row.Namespace, one.row.App = r.record.Namespace(), appOf(r.record.Namespace())
	}
	if q.full {
		one.homes = homes(r)
		one.named, one.namesAll = r.object.Named()
	}
	return one
}

// attachTasks gives the runs of a list their TaskRuns. These are read in one
// list, too, since the oldest of the runs: a TaskRun is never older than its run.
func (s *server) attachTasks(ctx context.Context, q query, runs []listed, held *holding) (whole bool, err error) {
	if len(runs) == 0 {
		return true, nil
	}
	var left omitted
	defer s.report(ctx, &left)
	owners := newOwners(runs)
	for rec, err := range s.archive.TaskRuns(ctx, q.scope.Namespace, runs[len(runs)-1].created) {
		var object *tekton.Object
		if err == nil {
			object, err = decode(rec)
		}
		if err != nil {
			if left.passOver(err) {
				continue
			}
			return false, err
		}
		for _, i := range owners.of(object, rec) {
			t := newListedTask(object, rec)
			if t.object, err = held.pack(rec.Value); err != nil {
				return false, err
			}
			runs[i].tasks = append(runs[i].tasks, t)
		}
	}
	for i := range runs {
		runs[i].arrange()
	}
	return left.records == 0, nil
}

// owners finds the runs of a list that a TaskRun is of, as tasks does for one run.
type owners struct {
	runs   []listed
	byUID  map[string]int
	byName map[string][]int // and Result
}

func newOwners(runs []listed) *owners {
	o := &owners{runs, make(map[string]int, len(runs)), make(map[string][]int, len(runs))}
	for i, r := range runs {
		o.byUID[r.row.Result] = i
		for _, home := range r.homes {
			o.byName[home+"/"+r.name] = append(o.byName[home+"/"+r.name], i)
		}
	}
	return o
}

// of gives the places of the runs in the list.
func (o *owners) of(object *tekton.Object, rec results.Record) []int {
	uid, name := object.Run()
	if uid != "" {
		if i, ok := o.byUID[uid]; ok && slices.Contains(o.runs[i].homes, rec.Result()) {
			return []int{i}
		}
		return nil
	}
	var all []int
	for _, i := range o.byName[rec.Result()+"/"+name] {
		if !rec.Created.Before(o.runs[i].created) { // else it is of an older run of the name
			all = append(all, i)
		}
	}
	return all
}
