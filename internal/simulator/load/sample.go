package load

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"hangar.io/glidepath/internal/simulator/life"
)

// samples are the lives of the runs: all that go on by themselves, so none that hangs or waits for a timeout.
func samples() []life.Sample {
	of := func(pipeline string, outcome life.Outcome, task string) life.Sample {
		return life.Sample{Pipeline: pipeline, Fate: life.Fate{Outcome: outcome, Task: task}}
	}
	return []life.Sample{
		of(life.PipelineBuild, life.Succeed, ""),
		of(life.PipelineTest, life.Succeed, ""),
		of(life.PipelineImage, life.Succeed, ""),
		of(life.PipelineDeploy, life.Succeed, ""),
		of(life.PipelineTest, life.Fail, "unit"),
		of(life.PipelineTest, life.Flaky, "unit"),
		of(life.PipelineBuild, life.Cancel, "compile"),
		of(life.PipelineImage, life.CancelFn, "image"),
		of(life.PipelineBuild, life.StopFn, "compile"),
	}
}

func (l *Load) sample(namespace string, slot, generation int) life.Sample {
	all := samples()
	sample := all[l.random("sample", namespace, fmt.Sprint(slot), fmt.Sprint(generation)).IntN(len(all))]
	sample.Namespace, sample.App = namespace, life.AppOf(namespace)
	sample.Name = fmt.Sprintf("%s-%d-%d", sample.Pipeline, slot, generation)
	return sample
}

// rehearse lives a copy of the run in memory, some steps or, with fewer than none, to the end. It returns how many it took.
func (l *Load) rehearse(of *life.PipelineRun, most int) (*life.World, int, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, 0, fmt.Errorf("encode %s: %w", of.Name, err)
	}
	world := &life.World{Rules: l.rules, Run: &life.PipelineRun{}}
	if err := json.Unmarshal(text, world.Run); err != nil {
		return nil, 0, fmt.Errorf("decode %s: %w", of.Name, err)
	}
	steps := 0
	for ; steps != most; steps++ {
		if changed, _ := world.Step(l.cfg.Clock.Now()); !changed {
			break
		}
	}
	return world, steps, nil
}

// fillings are what the objects of a life lack of the wanted size at its end, by name.
func (l *Load) fillings(end *life.World) map[string]string {
	fill := map[string]string{}
	lacking := func(name string, object any) {
		text, err := json.Marshal(object)
		// What the API server adds by itself: uid, resourceVersion, generation; and our label and the annotation's name.
		const besides = 200
		if lacks := l.cfg.ObjectBytes - len(text) - besides; err == nil && lacks > 0 {
			fill[name] = l.filling(name, lacks)
		}
	}
	lacking(end.Run.Name, end.Run)
	for _, task := range end.TaskRuns {
		lacking(task.Name, task)
	}
	return fill
}

// filling is text of the size that compresses about as well as objects do.
func (l *Load) filling(name string, size int) string {
	words := strings.Fields("workspace cache layer digest commit branch image registry module package test report")
	random := l.random("filling", name)
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "%s=%04x ", words[random.IntN(len(words))], random.IntN(1<<16))
	}
	return text.String()[:size]
}

func (l *Load) random(words ...string) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write(append([]byte(w), 0)) // a hash never fails
	}
	return rand.New(rand.NewPCG(l.cfg.Seed, h.Sum64())) //nolint:gosec // determinism is the point; nothing is secret
}
