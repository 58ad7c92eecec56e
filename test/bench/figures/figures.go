// Package figures is the arithmetic of the bench: what a series of interleaved runs says about two things that are compared,
// and how much of it is noise.
package figures

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figure is one line of the bench.
type Figure struct {
	Name  string
	Value float64
}

// String is the line: the name, a space, and the value with four significant digits.
func (f Figure) String() string {
	return f.Name + " " + strconv.FormatFloat(round(f.Value), 'f', -1, 64)
}

// round keeps four significant digits, and all digits before the point.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	digits := 4 - int(math.Ceil(math.Log10(math.Abs(v))))
	scale := math.Pow10(max(digits, 0))
	return math.Round(v*scale) / scale
}

// Median is the middle of the values, or the mean of the two in the middle. There is at least one.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile is the value that the share p of the sorted values does not exceed, by the nearest rank. p is over 0 and at most 1.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Series are the values of runs in the order base, subject, base, subject, …, base: each run of the subject stands between
// two of the base, so that a machine that becomes slower or faster on the way moves both.
type Series struct {
	Base, Subject []float64
}

// Result is what a series says.
type Result struct {
	// Value is the median of the subject against the two runs of the base around it.
	Value float64
	// Self is the same for the base against itself: the median of each run against the one before. Were there no noise
	// and no drift, it would be 1 for a ratio and 0 for a difference.
	Self float64
	// Noise is how far one run of the base is from the next, as a median.
	Noise float64
}

// Figures are the lines of a result.
func (r Result) Figures(name string) []Figure {
	return []Figure{{name, r.Value}, {name + "_self", r.Self}, {name + "_noise", r.Noise}}
}

// Ratio compares by dividing: the subject's value by the base's.
func (s Series) Ratio() (Result, error) {
	if slices.ContainsFunc(s.Base, func(v float64) bool { return v <= 0 }) {
		return Result{}, errors.New("a run of the base that did nothing")
	}
	return s.compare(func(a, b float64) float64 { return a / b }, 1)
}

// Difference compares by subtracting: the subject's value less the base's.
func (s Series) Difference() (Result, error) {
	return s.compare(func(a, b float64) float64 { return a - b }, 0)
}

func (s Series) compare(against func(a, b float64) float64, same float64) (Result, error) {
	if len(s.Subject) == 0 || len(s.Base) != len(s.Subject)+1 {
		return Result{}, fmt.Errorf("%d runs of the base and %d of the subject do not take turns", len(s.Base), len(s.Subject))
	}
	var values, selves, noise []float64
	for i, v := range s.Subject {
		values = append(values, against(v, (s.Base[i]+s.Base[i+1])/2))
		self := against(s.Base[i+1], s.Base[i])
		selves = append(selves, self)
		noise = append(noise, math.Abs(self-same))
	}
	return Result{Value: Median(values), Self: Median(selves), Noise: Median(noise)}, nil
}
