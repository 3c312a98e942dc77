package s3lock_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// confined starts a server with a bucket. It returns the client of a user without rights, and a
// function that gives the user the rights of a policy.
func confined(t *testing.T) (client *s3.Client, allow func(statements any)) {
	users := t.TempDir()
	const user = `{"accessAccounts": {"ada": {"access": "ada", "secret": "secret-of-ada", "role": "user"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(users, "users.json"), []byte(user), 0o600))
	s := testbed.StartVersitygw(t, bucketName, "--iam-dir", users)
	root := connect(t, s)
	client = connect(t, s, func(o *s3.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "ada", SecretAccessKey: "secret-of-ada"}, nil
		})
	})
	return client, func(statements any) {
		policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
		require.NoError(t, err)
		_, err = root.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{
			Bucket: aws.String(bucketName), Policy: aws.String(string(policy)),
		})
		require.NoError(t, err)
	}
}

// documented returns the statements of the policy in the README, for the bucket and a user.
func documented(t *testing.T) (statements []map[string]any) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(string(page))[1]
	var policy struct{ Statement []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(block, "my-bucket", bucketName)), &policy))
	for _, s := range policy.Statement {
		s["Principal"] = map[string]any{"AWS": []string{"ada"}}
	}
	return policy.Statement
}

func TestTheRightsOfTheReadmeAreEnough(t *testing.T) {
	client, allow := confined(t)
	allow(documented(t))
	require.NoError(t, s3lock.Probe(t.Context(), client, bucketName))
	c := open(t, client)
	adaptertest.Pair(t, c.Mutex("it"))
	swept, err := c.Sweep(t.Context(), "", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"it"}, swept)
}

func TestABucketWithoutRightsSaysWhichIsMissing(t *testing.T) {
	client, allow := confined(t)
	require.ErrorContains(t, s3lock.Probe(t.Context(), client, bucketName), "the right s3:PutObject is missing")
	l := open(t, client).Mutex("it")
	began := time.Now()
	require.ErrorContains(t, l.LockContext(adaptertest.Owner()), `s3lock: lock "it": bucket "locks-bucket": the right `+
		`s3:GetObject or s3:ListBucket is missing`)
	require.Less(t, time.Since(began), time.Minute, "it waits for nothing")

	statements := documented(t)
	statements[0]["Action"] = []string{"s3:GetObject", "s3:PutObject"}
	allow(statements)
	require.ErrorContains(t, l.LockContext(adaptertest.Owner()), "the right s3:DeleteObject is missing")
	adaptertest.Pair(t, open(t, client, s3lock.WithoutProbe()).Mutex("it")) // it deletes nothing
}
