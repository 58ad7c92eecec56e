package figures_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hangar.io/glidepath/test/bench/figures"
)

func TestTheMedianIsTheMiddle(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"of one":                   {[]float64{7}, 7},
		"of two is between them":   {[]float64{4, 2}, 3},
		"of three is the second":   {[]float64{9, 1, 5}, 5},
		"of four is between":       {[]float64{9, 1, 5, 3}, 4},
		"is not moved by one wild": {[]float64{1, 2, 3, 2, 1e9}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			values := append([]float64(nil), tc.values...)
			if got := figures.Median(values); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(tc.values, values); diff != "" {
				t.Errorf("the values were changed:\n%s", diff)
			}
		})
	}
	if got := figures.Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing it is %v", got)
	}
}

func TestThePercentileIsOfTheNearestRank(t *testing.T) {
	sorted := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[float64]float64{0.01: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.99: 10, 1: 10} {
		if got := figures.Percentile(sorted, p); got != want {
			t.Errorf("%v: got %v, want %v", p, got, want)
		}
	}
	if got := figures.Percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing it is %v", got)
	}
}

func TestASeriesSetsEachRunAgainstTheTwoAroundIt(t *testing.T) {
	near := cmpopts.EquateApprox(0, 1e-9)
	for name, tc := range map[string]struct {
		series            figures.Series
		ratio, difference figures.Result
	}{
		"the same": {
			figures.Series{Base: []float64{100, 100, 100}, Subject: []float64{100, 100}},
			figures.Result{Value: 1, Self: 1},
			figures.Result{},
		},
		"half as much": {
			figures.Series{Base: []float64{100, 100, 100, 100}, Subject: []float64{50, 50, 50}},
			figures.Result{Value: 0.5, Self: 1},
			figures.Result{Value: -50},
		},
		"half as much on a machine that becomes slower": {
			figures.Series{Base: []float64{110, 90, 70}, Subject: []float64{50, 40}},
			figures.Result{Value: 0.5, Self: (90./110 + 70./90) / 2, Noise: (20./110 + 20./90) / 2},
			figures.Result{Value: -45, Self: -20, Noise: 20},
		},
		"more, with noise that has no direction": {
			figures.Series{Base: []float64{100, 125, 100, 125, 100}, Subject: []float64{225, 225, 225, 225}},
			figures.Result{Value: 2, Self: (0.8 + 1.25) / 2, Noise: 0.225},
			figures.Result{Value: 112.5, Self: 0, Noise: 25},
		},
		"one wild run": {
			figures.Series{Base: []float64{100, 100, 100, 100}, Subject: []float64{90, 9, 90}},
			figures.Result{Value: 0.9, Self: 1},
			figures.Result{Value: -10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ratio, err := tc.series.Ratio()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.ratio, ratio, near); diff != "" {
				t.Errorf("ratio (-want +got):\n%s", diff)
			}
			difference, err := tc.series.Difference()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.difference, difference, near); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASeriesThatSaysNothingIsRefused(t *testing.T) {
	for name, s := range map[string]figures.Series{
		"empty":                   {},
		"no run of the subject":   {Base: []float64{1}},
		"no run of the base last": {Base: []float64{1, 1}, Subject: []float64{1, 1}},
	} {
		if r, err := s.Ratio(); err == nil {
			t.Errorf("%s: a ratio of %v", name, r)
		}
		if r, err := s.Difference(); err == nil {
			t.Errorf("%s: a difference of %v", name, r)
		}
	}
	if r, err := (figures.Series{Base: []float64{1, 0}, Subject: []float64{1}}).Ratio(); err == nil {
		t.Errorf("a base that did nothing: a ratio of %v", r)
	}
}

func TestALineIsANameAndAPlainNumber(t *testing.T) {
	for want, f := range map[string]figures.Figure{
		"a 0":         {Name: "a", Value: 0},
		"a 0.9123":    {Name: "a", Value: 0.912345},
		"a -0.001235": {Name: "a", Value: -0.00123456},
		"a 12.35":     {Name: "a", Value: 12.3456},
		"a 123457":    {Name: "a", Value: 123456.7},
		"a 1":         {Name: "a", Value: 1},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want := []figures.Figure{{Name: "r", Value: 0.9}, {Name: "r_self", Value: 1}, {Name: "r_noise", Value: 0.02}}
	if diff := cmp.Diff(want, figures.Result{Value: 0.9, Self: 1, Noise: 0.02}.Figures("r")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
