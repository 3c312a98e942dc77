package command

import (
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// timeFlag is a flag whose value is a time. A number without a unit means seconds, as for flock(1)
// and timeout(1).
type timeFlag = cli.FlagBase[time.Duration, cli.NoConfig, timeValue]

type timeValue time.Duration

func (timeValue) Create(value time.Duration, at *time.Duration, _ cli.NoConfig) cli.Value {
	*at = value
	return (*timeValue)(at)
}

func (timeValue) ToString(value time.Duration) string { return value.String() }

var errNoTime = errors.New("need a time such as 10, 10s, 5m or 1h30m; a number alone is seconds")

func (v *timeValue) Set(text string) error {
	if strings.Trim(text, "+-.0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errNoTime
	}
	*v = timeValue(d)
	return nil
}

func (v *timeValue) Get() any       { return time.Duration(*v) }
func (v *timeValue) String() string { return time.Duration(*v).String() }
