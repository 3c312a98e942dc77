package adaptertest

import "net/http"

// Transport sends the requests of a client to Server, in a mood.
type Transport struct {
	Moody
	Server  http.RoundTripper
	IsWrite func(*http.Request) bool
	Answer  func(*http.Request) (*http.Response, error) // the error
}

// RoundTrip sends a request, or answers it with the error.
func (tr *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := tr.roundTrip(r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func (tr *Transport) roundTrip(r *http.Request) (*http.Response, error) {
	carriedOut, refused := tr.Now(tr.IsWrite(r))
	if !carriedOut {
		if r.Body != nil {
			r.Body.Close()
		}
		return tr.Answer(r)
	}
	resp, err := tr.Server.RoundTrip(r)
	if err == nil && refused {
		resp.Body.Close()
		return tr.Answer(r)
	}
	return resp, err
}
