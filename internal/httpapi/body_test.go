package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// post sends a body as a stream whose length nobody knows.
func (s service) post(t *testing.T, body io.Reader) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, collection, io.NopCloser(body))
	r.ContentLength = -1
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return answer{w.Result(), w.Body.Bytes()}
}

func TestBodyArrivesInPieces(t *testing.T) {
	s := newService(t)
	body := `{"long_url":"http://example.com/` + strings.Repeat("a", 5000) + `"}`
	s.post(t, iotest.OneByteReader(strings.NewReader(body))).want(t, http.StatusCreated)
	s.post(t, iotest.DataErrReader(strings.NewReader(body))).want(t, http.StatusCreated)
}

func TestBodyOfExactlyTheLimit(t *testing.T) {
	s := newService(t)
	body := `{"long_url":"http://example.com"}`
	s.post(t, strings.NewReader(body+strings.Repeat(" ", 64<<10-len(body)))).want(t, http.StatusCreated)
	s.post(t, strings.NewReader(body+strings.Repeat(" ", 64<<10-len(body)+1))).want(t, http.StatusRequestEntityTooLarge).problem(t)
}

func TestBodyThatBreaksOff(t *testing.T) {
	s := newService(t)
	half := `{"long_url":"http://example.com"`
	for err, want := range map[error]int{
		io.ErrUnexpectedEOF:                  http.StatusBadRequest,
		errors.New("malformed chunk"):        http.StatusBadRequest,
		os.ErrDeadlineExceeded:               http.StatusRequestTimeout,
		&http.MaxBytesError{Limit: 64 << 10}: http.StatusRequestEntityTooLarge,
	} {
		s.post(t, io.MultiReader(strings.NewReader(half), iotest.ErrReader(err))).want(t, want).problem(t)
	}
	if s.stored(t) != 0 || s.log.Len() != 0 {
		t.Errorf("%d links stored, log %q", s.stored(t), s.log)
	}
}

// One request's body never shows in another's: the buffers are reused.
func TestBuffersAreNotShared(t *testing.T) {
	s := newService(t)
	s.post(t, strings.NewReader(`{"long_url":"http://example.com/secret","title":"secret"}`)).want(t, http.StatusCreated)
	first, err := s.store.Get(t.Context(), key("c000001"))
	if err != nil {
		t.Fatal(err)
	}
	s.post(t, strings.NewReader(`{"long_url":"http://XXXXXXXXXXXXXXXXXX/","title":"XXXXXX"}`)).want(t, http.StatusCreated)
	again, err := s.store.Get(t.Context(), key("c000001"))
	if err != nil || again.Destination != "http://example.com/secret" || again.Title != "secret" || first.Title != "secret" {
		t.Errorf("the first link changed with the second body: %+v, %v", again, err)
	}
}
