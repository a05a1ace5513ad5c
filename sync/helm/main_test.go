// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"os"
	"testing"
	"time"
)

// shared renders the charts of all tests.
var shared = &Renderer{Wait: 10 * time.Minute} // machines are shared, too

func TestMain(m *testing.M) {
	code := m.Run()
	shared.Close()
	os.Exit(code)
}
