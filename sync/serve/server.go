// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package serve is how operators reach the daemon: an HTTP API on a unix socket, and its
// client, which the commands are. The API only reads what is stored and stores what
// operators say; the next pass of the daemon takes it up. It never talks to a cluster,
// decides nothing, and holds up no pass.
//
// The other end's user says who asks: the daemon's own user, root, and the operators of its
// configuration may do everything, others nothing.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	gosync "sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/listen"
	"github.com/swell-sh/swell/sync/store"
)

// Options of a [Server]. All are required but Operators.
type Options struct {
	// Store is a [store.Store.Beside] of the daemon's.
	Store *store.Store
	API   config.API
	// Wake is called when an order was stored.
	Wake    func()
	Log     *slog.Logger
	Version string // of swell
	// Planner makes forecasts. Nil: there are none.
	Planner *sync.Planner
	// Now is the clock. Nil is the real one.
	Now func() time.Time
}

// Server answers operators.
type Server struct {
	Options
	view      View
	operators map[uint32]Who // besides root and the user of the process
	listener  net.Listener
	http      *http.Server
	over      chan struct{}      // closed when it answers no more
	reads     chan struct{}      // a token for each answer that takes memory
	watches   chan struct{}      // a token for each client that watches
	watchFor  time.Duration      // how long a watch lasts
	plans     chan struct{}      // a token for the forecast under way
	ending    context.Context    // ends what would not end by itself
	end       context.CancelFunc // of ending
	closed    gosync.Once
}

const (
	// maxBody is far more than an order has.
	maxBody = 64 << 10
	// readsAtOnce bounds the memory that answers take.
	readsAtOnce = 4
	// watchesAtOnce is how many clients may watch.
	watchesAtOnce = 64
	// connectionsAtOnce bounds the connections of all users, connectionsOfOne those of one who may
	// order: the commands of many terminals, each of which may watch. All users who may nothing
	// have strangersAtOnce together, which are there until they are told so: a user can have
	// thousands of numbers of its own (subuid).
	connectionsAtOnce = 256
	connectionsOfOne  = 2 * watchesAtOnce
	strangersAtOnce   = 16
	// answerPatience is how long an answer may take: the write of an order waits for a pass
	// that renders an earlier commit, for a minute at most.
	answerPatience = 90 * time.Second
	headerPatience = 5 * time.Second
	idlePatience   = time.Minute
)

// Listen makes the socket and begins to answer. The state's lock must be held.
func Listen(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{Options: o, view: View{Store: o.Store, Now: o.Now, Planner: o.planner}, operators: map[uint32]Who{}, over: make(chan struct{}),
		reads: make(chan struct{}, readsAtOnce), watches: make(chan struct{}, watchesAtOnce), watchFor: watchFor,
		plans: make(chan struct{}, 1)}
	shared := s.findOperators()
	var err error
	if s.listener, err = makeSocket(o.API.Socket, shared); err != nil {
		return nil, err
	}
	if dir := filepath.Dir(o.API.Socket); shared && !mayPass(dir) {
		o.Log.Warn("api: operators cannot reach the socket: spec.api.socket wants a folder that they may enter", "folder", dir)
	}
	s.ending, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)}
	bounded := listen.Bound(s.listener, listen.Bounds{All: connectionsAtOnce, Caller: s.caller, Name: "the socket", Log: o.Log})
	go func() {
		defer close(s.over)
		if err := s.http.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("api", "err", err)
		}
	}()
	return s, nil
}

// findOperators looks the operators up, and says whether there are users among them that
// are not the daemon's own.
func (s *Server) findOperators() (others bool) {
	for _, o := range s.API.Operators {
		u, err := user.Lookup(o.User)
		if err != nil {
			s.Log.Warn("api", "operator", o.User, "err", err)
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			s.Log.Warn("api", "operator", o.User, "err", err)
			continue
		}
		s.operators[uint32(uid)] = Who{Name: o.User, Also: o.Emails}
		others = others || uint32(uid) != uint32(os.Getuid())
	}
	return others
}

// mayPass says whether a folder lets others than its owner in.
func mayPass(dir string) bool {
	info, err := os.Stat(dir)
	return err != nil || info.Mode().Perm()&0o011 != 0
}

// closePatience is how long answers under way may take when the daemon ends.
const closePatience = 5 * time.Second

// Close ends the answers and removes the socket. It must be called before the state's lock
// is given up.
func (s *Server) Close() error {
	var err error
	s.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		err = os.Remove(s.API.Socket) // first: who finds it finds somebody
		s.end()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close() // answers that do not end are cut off
		}
		<-s.over
	})
	return err
}

// caller is who a connection counts for, and how many that one may have.
func (s *Server) caller(address net.Addr) (name string, most int) {
	who, err := s.who(address.String(), "")
	if err != nil {
		return "all users who may not order", strangersAtOnce
	}
	return "user " + who.Name, connectionsOfOne
}

// who is the user at the other end; the error says that it may do nothing.
func (s *Server) who(address, onBehalf string) (Who, error) {
	uid, ok := uidOf(address)
	if !ok {
		return Who{}, refuse(http.StatusForbidden, "it is not known who asks")
	}
	if who, ok := s.operators[uid]; ok {
		return who, nil
	}
	if uid != 0 && uid != uint32(os.Getuid()) {
		return Who{}, refuse(http.StatusForbidden, "user %s may not: the daemon's own user, root and spec.api.operators may", userName(uid))
	}
	who := Who{Name: userName(uid)}
	if uid == 0 && onBehalf != "" && len(onBehalf) <= maxName && isName(onBehalf) {
		who = AsRoot(s.API, onBehalf, who.Name)
	}
	return who, nil
}

func userName(uid uint32) string {
	text := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

// maxName is the longest name of a user.
const maxName = 64

func isName(name string) bool {
	for _, r := range name {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return true
}

// onBehalfHeader is how root says who became root by sudo.
const onBehalfHeader = "Swell-Sudo-User"

// handler is the API for those who may use it.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	settings := huma.DefaultConfig("swell", s.Version)
	settings.Info.Description = "What a swell daemon knows, and orders to it."
	settings.DocsPath, settings.SchemasPath, settings.CreateHooks = "", "", nil
	api := humago.New(mux, settings)
	s.register(api)
	documented(api.OpenAPI())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, refuse(http.StatusNotFound, "%s %s: no such endpoint", r.Method, path.Clean(r.URL.Path)).hint("GET /openapi.json lists them"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var denied *Error
		if _, err := s.who(r.RemoteAddr, ""); errors.As(err, &denied) {
			s.Log.Warn("api", "err", denied.Detail)
			writeProblem(w, denied)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerPatience))
		mux.ServeHTTP(w, r)
	})
}

func writeProblem(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e)
}

// reading runs what takes memory, a few at a time.
func reading[T any](ctx context.Context, s *Server, read func() (T, error)) (value T, err error) {
	select {
	case s.reads <- struct{}{}:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	defer func() { <-s.reads }()
	if value, err = read(); err != nil {
		err = problemOf(err)
	}
	return value, err
}

// update stores what an operator said. It does not end with the connection: who repeats it
// with its key learns what became of it.
func (s *Server) update(ctx context.Context, do func(*store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerPatience)
	defer cancel()
	err := s.Store.Update(ctx, do)
	if err == nil {
		s.Wake()
	}
	return err
}
