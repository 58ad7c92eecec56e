package simulator

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

// LabelMade marks the runs that a simulator created.
const LabelMade = "simulator.hangar.io/made"

const (
	// createEvery is how often, at pace 1, a run is created while there are too few.
	createEvery = 3 * time.Second
	shortest    = 20 * time.Millisecond
	// unseenFor is how long a created run counts though the cache does not show it.
	unseenFor = 30 * time.Second
	// nameTries bounds the search for a name that is free: an earlier simulator with the same seed may have left its runs.
	nameTries = 100
)

// create keeps RunsInFlight runs going until ctx ends.
func (s *Simulator) create(ctx context.Context) {
	c := &creator{Simulator: s, unseen: map[key]time.Time{}}
	ticker := s.cfg.Clock.NewTicker(max(time.Duration(float64(createEvery)*s.cfg.Pace), shortest))
	defer ticker.Stop()
	for {
		if c.inFlight() < s.cfg.RunsInFlight {
			if err := c.createOne(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Logger.Warn("creating a run failed, trying again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// creator is what create knows; it belongs to one goroutine.
type creator struct {
	*Simulator
	made   int               // runs asked for, and the number of the next
	unseen map[key]time.Time // created, not yet in the cache
}

// inFlight counts the runs of this and earlier simulators that have not ended.
func (c *creator) inFlight() int {
	now, count := c.cfg.Clock.Now(), 0
	for _, object := range c.cache.all(pipelineRun) {
		delete(c.unseen, key{kind: pipelineRun, namespace: object.GetNamespace(), name: object.GetName()})
		if object.GetLabels()[LabelMade] == "" {
			continue
		}
		run := &life.PipelineRun{}
		if err := life.Decode(object, run); err != nil || !run.Status.Conditions.Done() {
			count++
		}
	}
	for k, created := range c.unseen {
		if now.Sub(created) > unseenFor {
			delete(c.unseen, k)
		}
	}
	return count + len(c.unseen)
}

// createOne creates the next run whose name is free.
func (c *creator) createOne(ctx context.Context) error {
	for range nameTries {
		sample := c.sample(c.made)
		c.made++
		run := sample.PipelineRun()
		run.Labels[LabelMade] = "true"
		object, err := life.Encode(run)
		if err != nil {
			return err
		}
		_, err = c.resource(object).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case apierrors.IsAlreadyExists(err):
			continue
		case err != nil:
			return fmt.Errorf("create PipelineRun %s/%s: %w", run.Namespace, run.Name, err)
		}
		c.unseen[key{kind: pipelineRun, namespace: run.Namespace, name: run.Name}] = c.cfg.Clock.Now()
		return nil
	}
	return fmt.Errorf("no free name in %d tries", nameTries)
}
