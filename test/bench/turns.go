package bench

import (
	"context"
	"strings"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/test/bench/figures"
)

// turns runs base and subject in turns, the base first and last, n times the subject. Each run gives as many values as
// there are series.
func turns(ctx context.Context, n, series int, base, subject func(context.Context) ([]float64, error)) ([]figures.Series, error) {
	out := make([]figures.Series, series)
	for i := range 2*n + 1 {
		run := base
		if i%2 == 1 {
			run = subject
		}
		values, err := run(ctx)
		if err != nil {
			return nil, err
		}
		for s := range out {
			if i%2 == 1 {
				out[s].Subject = append(out[s].Subject, values[s])
			} else {
				out[s].Base = append(out[s].Base, values[s])
			}
		}
	}
	return out, nil
}

// ratio is the lines of a series that compares by dividing.
func ratio(name string, s figures.Series) ([]figures.Figure, error) {
	r, err := s.Ratio()
	if err != nil {
		return nil, err
	}
	return r.Figures(name), nil
}

// difference is the lines of a series that compares by subtracting.
func difference(name string, s figures.Series) ([]figures.Figure, error) {
	r, err := s.Difference()
	if err != nil {
		return nil, err
	}
	return r.Figures(name), nil
}

// address is an edge as host:port.
func address(e *devenv.Edge) string { return strings.TrimPrefix(e.URL, "http://") }
