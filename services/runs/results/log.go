package results

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

const doingLog = "reading a log"

// Log gives the stored log of a TaskRun as it is sent, to be closed by the caller,
// or ErrNoLog when Results stored none. result is the Result that holds the
// TaskRun ([Record.Result]). A read of it that fails is an *Error: what came
// before is then not the whole log.
func (c *Client) Log(ctx context.Context, namespace, result, taskRunUID string) (io.ReadCloser, error) {
	at, err := path(namespace, "results", result, "logs", taskRunUID)
	if err != nil || namespace == anyNamespace || result == anyNamespace || taskRunUID == anyNamespace {
		return nil, ErrNoLog
	}
	var log io.ReadCloser
	err = c.again(ctx, func() error {
		resp, err := c.get(ctx, doingLog, at, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			defer drain(resp.Body)
			return noLog(resp)
		}
		if log, err = openLog(resp.Body); err != nil {
			_ = resp.Body.Close() // nothing was in it, or it broke
		}
		return err
	})
	return log, err
}

// noLog gives ErrNoLog when Results says that nothing is stored, in the words of
// its several ways to store logs.
func noLog(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusNotFound: // that logs are switched off too
		if s := refusal(resp.Body); s != nil && s.Code == codeNotFound {
			return ErrNoLog
		}
	case http.StatusInternalServerError: // the plug-ins' word for it, as text
		text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if err == nil && strings.Contains(string(text), "code = NotFound") {
			return ErrNoLog
		}
	}
	return &Error{Doing: doingLog, Status: resp.StatusCode}
}

// openLog waits for the first byte: an empty log is what is sent for one that was
// not stored.
func openLog(body io.ReadCloser) (io.ReadCloser, error) {
	r := bufio.NewReader(body)
	switch _, err := r.Peek(1); {
	case errors.Is(err, io.EOF):
		return nil, ErrNoLog
	case err != nil:
		return nil, failed(doingLog, http.StatusOK, err)
	}
	return &logText{r: r, body: body}, nil
}

// logText is the text of a log.
type logText struct {
	r    io.Reader
	body io.Closer
}

// Read reads a part of the log.
func (l *logText) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failed(doingLog, http.StatusOK, err)
	}
	return n, err
}

// Close ends the reading.
func (l *logText) Close() error { return l.body.Close() }
