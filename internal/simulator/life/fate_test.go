package life_test

import (
	"testing"

	"hangar.io/glidepath/internal/simulator/life"
)

func TestParseFate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]life.Fate{
		"succeed":               {Outcome: life.Succeed},
		"unpend":                {Outcome: life.Unpend},
		"fail:unit":             {Outcome: life.Fail, Task: "unit"},
		"fail:unit/vet":         {Outcome: life.Fail, Task: "unit", Step: "vet"},
		"cancelRunFinally:unit": {Outcome: life.CancelFn, Task: "unit"},
	} {
		got, err := life.ParseFate(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v, %v and again %q", text, got, err, got.String())
		}
	}
	for _, text := range []string{"", "fail", "fail:", "fail:unit/", "fail:a/b/c", "succeed:unit", "explode:unit"} {
		if got, err := life.ParseFate(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}

func FuzzParseFate(f *testing.F) {
	for _, seed := range []string{"succeed", "fail:unit/vet", "hang:", "unpend:x", "cancel:a/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fate, err := life.ParseFate(text)
		if err != nil {
			return
		}
		if again, err := life.ParseFate(fate.String()); err != nil || again != fate {
			t.Errorf("%q is %+v, which reads as %+v, %v", text, fate, again, err)
		}
	})
}

func TestTheSameSeedLivesTheSameLife(t *testing.T) {
	t.Parallel()
	play := func(seed uint64) string {
		r := rules()
		r.Seed = seed
		run := asked(life.PipelineTest, life.Fate{})
		delete(run.Annotations, life.FateAnnotation)
		return live(t, r, run).end.String() + run.Status.Conditions.Succeeded().Message
	}
	if play(1) != play(1) {
		t.Error("one seed gives two lives")
	}
	if play(1) == play(2) && play(2) == play(3) {
		t.Error("three seeds give one life")
	}
}

func TestDrawnFatesAreMostlyGood(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := range uint64(200) {
		r := rules()
		r.Seed = seed
		run := asked(life.PipelineTest, life.Fate{})
		delete(run.Annotations, life.FateAnnotation)
		ends[live(t, r, run).world.Run.Status.Conditions.Succeeded().Reason]++
	}
	if ends["Succeeded"] < 100 || ends["Failed"] < 10 || ends["Succeeded"]+ends["Failed"] != 200 {
		t.Errorf("200 runs ended as %v", ends)
	}
}

func TestAnUnreadableFateCountsAsNone(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineTest, life.Fate{})
	run.Annotations[life.FateAnnotation] = "explode"
	live(t, rules(), run)
}
