package k8slock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jucgo/locks/distributed/caslock"
)

const (
	// label marks all objects that a client has ever locked.
	label = "jucgo.github.io/lock"
	// annotation has the data for which Lease objects lack fields.
	annotation = "jucgo.github.io/lock"
)

// format writes a Record to the fields that other programs of Kubernetes use as well. A free lock
// has the lease of a second that client-go writes when it releases. kube-apiserver does not permit
// a shorter lease.
type format struct{}

// mark is the value of the annotation. Other programs that write the spec leave the annotation as
// it is. So the mark counts only together with the spec of its own write.
type mark struct {
	Acquisition string           `json:"acquisition,omitempty"`
	By          json.RawMessage  `json:"by,omitempty"`
	Write       string           `json:"write"`
	RenewTime   metav1.MicroTime `json:"renewTime"`
	Released    string           `json:"released,omitempty"`
}

// holder returns the holderIdentity: a label for people, and the acquisition, which makes it
// unique.
func (m mark) holder() string {
	if m.Acquisition == "" {
		return ""
	}
	var by struct {
		Label string `json:"label"`
	}
	_ = json.Unmarshal(m.By, &by) // without a label, the acquisition is enough
	if by.Label == "" {
		return m.Acquisition
	}
	return by.Label + "_" + m.Acquisition
}

func (format) Encode(r caslock.Record) ([]byte, error) {
	if r.Token > math.MaxInt32 {
		return nil, errors.New("leaseTransitions can be no greater")
	}
	m := mark{Acquisition: r.Holder, Write: r.Nonce, RenewTime: metav1.NewMicroTime(r.Written), Released: r.Released}
	if json.Valid([]byte(r.Identity)) {
		m.By = json.RawMessage(r.Identity)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	acquired, seconds := m.RenewTime, int64(1)
	if r.Holder != "" {
		acquired = metav1.NewMicroTime(r.Since)
		seconds = int64((r.Lease + time.Second - 1) / time.Second)
	}
	if seconds > math.MaxInt32 {
		return nil, fmt.Errorf("a lease of %v is too long", r.Lease)
	}
	holder, duration, transitions := m.holder(), int32(seconds), int32(r.Token)
	return json.Marshal(object{
		Metadata: metadata{
			Labels: map[string]string{label: "true"}, Annotations: map[string]string{annotation: string(text)},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &duration, AcquireTime: &acquired,
			RenewTime: &m.RenewTime, LeaseTransitions: &transitions,
		},
	})
}

func (format) Decode(data []byte) (r caslock.Record, err error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return r, err
	}
	spec := o.Spec
	switch {
	case value(spec.Strategy) != "":
		return r, fmt.Errorf("its strategy is %q: the API server chooses its holder", *spec.Strategy)
	case value(spec.LeaseTransitions) < 0:
		return r, fmt.Errorf("leaseTransitions is %d", *spec.LeaseTransitions)
	}
	r.Holder, r.Token = value(spec.HolderIdentity), uint64(value(spec.LeaseTransitions))
	r.Written = value(spec.RenewTime).Time
	if r.Holder != "" {
		r.Lease = time.Duration(value(spec.LeaseDurationSeconds)) * time.Second
		r.Since = value(spec.AcquireTime).Time
	}
	var m mark
	if json.Unmarshal([]byte(o.Metadata.Annotations[annotation]), &m) == nil &&
		m.RenewTime.Equal(spec.RenewTime) && m.holder() == r.Holder {
		r.Holder, r.Identity, r.Nonce, r.Released = m.Acquisition, string(m.By), m.Write, m.Released
	}
	return r, nil
}

// value returns what p points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
