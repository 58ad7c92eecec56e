package simulator

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

// scenarios are the lives that the simulator's own runs lead, one after another in an order drawn anew for each round:
// about half go well, the others go wrong in every way there is.
func (s *Simulator) scenarios() []life.Sample {
	of := func(pipeline string, outcome life.Outcome, task string) life.Sample {
		return life.Sample{Pipeline: pipeline, Fate: life.Fate{Outcome: outcome, Task: task}}
	}
	late := of(life.PipelineBuild, life.Hang, "compile")
	late.Timeouts = &life.Timeouts{Pipeline: s.paced(40 * time.Second)}
	lateTasks := of(life.PipelineImage, life.Hang, "image")
	lateTasks.Timeouts = &life.Timeouts{Pipeline: s.paced(70 * time.Second), Tasks: s.paced(40 * time.Second)}
	pending := of(life.PipelineTest, life.Unpend, "")
	pending.Status = life.SpecPending
	skipping := of(life.PipelineDeploy, life.Succeed, "")
	skipping.Env = "dev"
	tolerant := of(life.PipelineTest, life.Fail, "unit")
	tolerant.Fate.Step = "vet"
	return []life.Sample{
		of(life.PipelineBuild, life.Succeed, ""),
		of(life.PipelineTest, life.Succeed, ""),
		of(life.PipelineImage, life.Succeed, ""),
		of(life.PipelineDeploy, life.Succeed, ""),
		of(life.PipelinePromote, life.Succeed, ""),
		of(life.PipelineRollback, life.Fail, "gates"),
		of(life.PipelineTest, life.Fail, "lint"),
		of(life.PipelineTest, life.Fail, "unit"),
		of(life.PipelineTest, life.Flaky, "unit"),
		of(life.PipelineDeploy, life.Hang, "deploy"),
		of(life.PipelineBuild, life.Cancel, "compile"),
		of(life.PipelineImage, life.CancelFn, "image"),
		of(life.PipelineBuild, life.StopFn, "compile"),
		of("retired", life.Succeed, ""), // a pipeline that is no longer in the catalog
		late, lateTasks, pending, skipping, tolerant,
	}
}

func (s *Simulator) paced(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(float64(d) * s.cfg.Pace)}
}

// nameAlphabet is what an API server makes names of.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// sample is the run with the number: the same for the same seed.
func (s *Simulator) sample(number int) life.Sample {
	scenarios := s.scenarios()
	round := s.random("round", number/len(scenarios))
	sample := scenarios[round.Perm(len(scenarios))[number%len(scenarios)]]
	sample.Namespace = s.cfg.Namespaces[number%len(s.cfg.Namespaces)]
	sample.App = life.AppOf(sample.Namespace)
	letters := s.random("name", number)
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = nameAlphabet[letters.IntN(len(nameAlphabet))]
	}
	sample.Name = sample.Pipeline + "-" + string(suffix)
	return sample
}

func (s *Simulator) random(what string, number int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))                                       // a hash never fails
	return rand.New(rand.NewPCG(s.cfg.Seed, h.Sum64()+uint64(number))) //nolint:gosec // determinism is the point; nothing is secret
}
