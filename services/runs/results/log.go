package results

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"errors"
	"io"
	"mime"
	"net/http"
)

const doingLog = "reading a log"

// Log gives the stored log of a TaskRun as it is sent, to be closed by the caller,
// or ErrNoLog when Results stored none. result is the Result that holds the
// TaskRun ([Record.Result]). A read of it that fails is an *Error: what came
// before is then not the whole log. A uid that Results has no log under, since it
// cannot be one, is of a bad record.
//
// The text is whatever steps wrote: any bytes. A server that keeps logs itself
// adds a newline after every 32 KiB and one at the end.
func (c *Client) Log(ctx context.Context, namespace, result, taskRunUID string) (io.ReadCloser, error) {
	at, err := path(namespace, "results", result, "logs", taskRunUID)
	if err != nil || namespace == anyNamespace || result == anyNamespace || taskRunUID == anyNamespace {
		return nil, badRecord("", "its uid or its Result's name can be none")
	}
	var log *logText
	err = c.again(ctx, func() error {
		answer, err := c.get(ctx, ask{kindLog, doingLog}, at, nil)
		if err != nil {
			return err
		}
		if log, err = openLog(answer.Response, c.limits.LogBytes); err != nil {
			if answer.StatusCode == http.StatusOK && !errors.Is(err, ErrNoLog) {
				answer.Reject()
			}
			_ = answer.Body.Close() // it was no log
			return err
		}
		log.reject = answer.Reject
		return nil
	})
	if err != nil {
		return nil, err
	}
	return log, nil
}

// openLog takes an answer for a log. It waits for the first byte: nothing is what
// some servers send for a log that was not stored.
func openLog(resp *http.Response, most int64) (*logText, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, noLog(resp)
	}
	// Logs come as text or, from servers that keep them themselves, called JSON.
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "text/html" {
		return nil, &Error{Doing: doingLog, Status: resp.StatusCode, Cause: final("a page came as an answer")}
	}
	l := &logText{body: resp.Body, r: bufio.NewReaderSize(resp.Body, maxErrorLine), left: most, lineStart: true}
	switch err := l.fill(); {
	case errors.Is(err, io.EOF):
		return nil, ErrNoLog
	case err != nil:
		return nil, err
	}
	return l, nil
}

// noLog gives ErrNoLog when Results says that nothing is stored, in the words of
// its several ways to store logs.
func noLog(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusNotFound: // also when Results serves no logs at all
		if s := refusal(resp.Body); s != nil && s.Code == codeNotFound {
			return ErrNoLog
		}
	case http.StatusInternalServerError: // of a plug-in, as text
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorLine))
		if err == nil && bytes.Contains(text, []byte("code = NotFound")) {
			return ErrNoLog
		}
	}
	return refused(doingLog, resp)
}

const (
	// maxErrorLine is how long an error behind a log may be to be known as one.
	maxErrorLine = 8 << 10
	errorLine    = `{"error":`
)

// logText is the text of a log. A server whose store fails in the middle has sent
// 200 already, and puts the error behind what it has sent, as a line of JSON.
type logText struct {
	body   io.Closer
	r      *bufio.Reader
	left   int64
	reject func() // notes that it was no log; nil while it is opened

	ready     []byte // what is read and not given out; good until the next fill
	lineStart bool   // ready's end is the end of a line
	err       error
}

// Read reads a part of the log.
func (l *logText) Read(p []byte) (int, error) {
	if len(l.ready) == 0 {
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}

// fill reads a line, or a part of a long one.
func (l *logText) fill() error {
	if l.err != nil {
		return l.err
	}
	line, err := l.r.ReadSlice('\n')
	switch {
	case err == nil, errors.Is(err, bufio.ErrBufferFull):
	case errors.Is(err, io.EOF):
		l.err = io.EOF
	default:
		l.err = failed(doingLog, http.StatusOK, err)
		return l.err // a broken line is not given out: nobody sees where it broke
	}
	if l.left -= int64(len(line)); l.left < 0 {
		l.err = failed(doingLog, http.StatusOK, errTooLarge)
		return l.err
	}
	if l.lineStart && bytes.HasPrefix(line, []byte(errorLine)) && err == nil {
		line = bytes.Clone(line) // looking ahead overwrites it
		if _, perr := l.r.Peek(1); errors.Is(perr, io.EOF) {
			l.err = io.EOF
		}
	}
	if l.err != nil && l.lineStart && isFailure(line) {
		l.err = &Error{Doing: doingLog, Status: http.StatusOK, Cause: errors.New("the log broke off")}
		if l.reject != nil {
			l.reject()
		}
		return l.err
	}
	l.ready, l.lineStart = line, bytes.HasSuffix(line, []byte{'\n'})
	if len(line) == 0 {
		return l.err
	}
	return nil
}

// lastCode is the last of gRPC's codes, which servers give. Many APIs that steps
// call print errors of the same shape, with a status of HTTP.
const lastCode = 16

// broken is what a server puts behind a log that it cannot go on with: a status of
// gRPC, and nothing else. Its clients print such a status with more around it.
type broken struct {
	Error *struct {
		Code    int              `json:"code"`
		Message string           `json:"message"`
		Details []jsontext.Value `json:"details"`
	} `json:"error"`
}

// isFailure reports whether a last line is a server's word about a failure. Steps
// may write JSON, but not of this shape.
func isFailure(line []byte) bool {
	var b broken
	if !bytes.HasPrefix(line, []byte(errorLine)) || len(line) > maxErrorLine || jsonv2.Unmarshal(line, &b, jsonv2.RejectUnknownMembers(true)) != nil {
		return false
	}
	return b.Error != nil && b.Error.Code > 0 && b.Error.Code <= lastCode && b.Error.Message != ""
}

// Close ends the reading.
func (l *logText) Close() error { return l.body.Close() }
