package all_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestTheEmulatorOfTheEnvironmentIsUsed(t *testing.T) {
	s := testbed.StartFakeGCS(t, "locks-bucket", "")
	for _, host := range []string{s.Addr(), s.URL()} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		l, owner := opened(t, "gs://locks-bucket").Locker("it"), someone()
		require.NoError(t, l.LockContext(owner))
		require.NoError(t, l.UnlockContext(owner))
		names, err := opened(t, "gs://locks-bucket/app").Names(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, names, "another prefix")
	}
}

func TestAPrefixThatNoObjectCanHaveIsRefused(t *testing.T) {
	require.Contains(t, refused(t, "gs://b/a//b?endpoint=http://h"), "between the slashes")
}

func TestAMissingBucketOfS3IsAClearError(t *testing.T) {
	_, err := open.URL(t.Context(), "s3://"+testbed.S3Access+":"+url.QueryEscape(testbed.S3Secret)+
		"@missing?endpoint=http://"+testbed.StartVersitygw(t, "locks-bucket").Addr())
	require.ErrorContains(t, err, "the bucket does not exist: create it, by aws s3 mb: ")
	require.NotErrorIs(t, err, open.ErrURL)
	require.NotErrorIs(t, err, open.ErrUnreachable)
}

func TestAMissingBucketOfGoogleIsAClearError(t *testing.T) {
	_, err := open.URL(t.Context(), "gs://missing?endpoint="+testbed.StartFakeGCS(t, "locks-bucket", "").URL())
	require.ErrorContains(t, err, "open: gs://missing: the bucket does not exist: create it, by gcloud storage buckets create")
	require.NotErrorIs(t, err, open.ErrURL)
	require.NotErrorIs(t, err, open.ErrUnreachable)
}
