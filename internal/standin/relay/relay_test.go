package relay_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/standin/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each line with itself until the test ends, and gives its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func start(t *testing.T, target string) *relay.Relay {
	t.Helper()
	r, err := relay.Start("127.0.0.1:0", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func dial(t *testing.T, r *relay.Relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a line and gives what comes back within the time.
func ask(t *testing.T, c net.Conn, within time.Duration) (string, error) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(c, "there?"); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func TestWhatIsCutIsSilentAndWhatIsMendedAnswers(t *testing.T) {
	r := start(t, echo(t))
	open := dial(t, r)
	if got, err := ask(t, open, 20*time.Second); err != nil || got != "there?\n" {
		t.Fatalf("before: %q, %v", got, err)
	}
	r.Cut()
	for name, c := range map[string]net.Conn{"an open connection": open, "a new connection": dial(t, r)} {
		if got, err := ask(t, c, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s is not silent: %q, %v", name, got, err)
		}
	}
	r.Mend()
	if got, err := ask(t, open, 20*time.Second); err == nil {
		t.Errorf("a connection that has lost bytes goes on: %q", got)
	}
	if got, err := ask(t, dial(t, r), 20*time.Second); err != nil || got != "there?\n" {
		t.Errorf("after: %q, %v", got, err)
	}
}

func TestAPeerThatEndsIsSeenToEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := start(t, l.Addr().String())
	c := dial(t, r)
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	if _, err := ask(t, c, 20*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the end was not passed on: %v", err)
	}
}

func TestATargetThatIsNotThereIsAConnectionThatIsClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	if _, err := ask(t, dial(t, start(t, addr)), 20*time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
