package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"hangar.io/glidepath/test/bench/view"
)

// Viewers are viewers under way.
type Viewers struct {
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *json.Decoder
	complaints bytes.Buffer
	cancel     context.CancelFunc
}

// Look starts viewers, and returns when all have been shown what there is. Each that is returned is ended by End or Leave.
func Look(ctx context.Context, s view.Spec) (*Viewers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting viewers: %w", err)
	}
	v := &Viewers{}
	ctx, v.cancel = context.WithCancel(ctx)
	v.cmd = exec.CommandContext(ctx, self, prefix+partView)
	v.cmd.Stderr = &v.complaints
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		v.cancel()
		return nil, fmt.Errorf("starting viewers: %w", err)
	}
	out, err := v.cmd.StdoutPipe()
	if err == nil {
		err = v.cmd.Start()
	}
	if err != nil {
		v.cancel()
		return nil, fmt.Errorf("starting viewers: %w", err)
	}
	v.out = json.NewDecoder(out)
	var ready view.Ready
	err = errors.Join(json.NewEncoder(v.in).Encode(s), v.out.Decode(&ready), view.Report{Failures: ready.Failures}.Err())
	if err != nil {
		err = fmt.Errorf("viewers by %s: %w", s.Way, err)
		return nil, errors.Join(err, v.Leave())
	}
	return v, nil
}

// End says that there are no more changes, and gives what the viewers saw once they have seen all or their time is over.
func (v *Viewers) End() (view.Report, error) {
	var r view.Report
	err := errors.Join(v.in.Close(), v.out.Decode(&r))
	if err != nil {
		return r, errors.Join(fmt.Errorf("reading what viewers saw: %w", err), v.Leave())
	}
	defer v.cancel()
	if err := v.cmd.Wait(); err != nil {
		return r, fmt.Errorf("ending viewers: %w", err)
	}
	return r, r.Err()
}

// Leave ends the viewers at once.
func (v *Viewers) Leave() error {
	v.cancel()
	_ = v.cmd.Wait() // it was killed
	if text := strings.TrimSpace(v.complaints.String()); text != "" {
		return errors.New(text)
	}
	return nil
}
