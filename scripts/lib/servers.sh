# shellcheck shell=bash
# Private Postgres and Redis servers for scripts/test and scripts/bench. Sourced, not run.
#
# Owns one temporary folder and every server started in it. Promises: free ports, loopback only, nothing
# shared with a server of the system's, all of it gone when the script ends. Knows nothing of Tidegate.
# When something cannot be had it says what, and what to do, and ends the script.
#
#   servers_need                       installs Postgres, Redis, a C compiler and sqlite3 where they are missing
#   servers_open LABEL                 makes the folder, and closes it when the script ends
#   postgres_start NAME [key=value…]   sets POSTGRES_URL, POSTGRES_PORT, POSTGRES_PID, POSTGRES_DATA
#   redis_start NAME [argument…]       sets REDIS_URL, REDIS_PORT, REDIS_PID
#   postgres_stop NAME, redis_stop NAME
#   servers_close                      stops what still runs
#
# After servers_need: PG_BIN (folder of initdb and postgres), PG_USER (whom to run it as, empty for
# oneself; Postgres refuses to run as root) and REDIS_BIN (the server's path) are set.

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# --- finding and installing -------------------------------------------------------------------------

find_postgres() {
    local folder
    for folder in "${TIDEGATE_TEST_PG_BIN:-}" $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t/ -k5,5nr) \
        /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin "$(dirname "$(command -v initdb || echo /none)")"; do
        if [ -n "$folder" ] && [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
            PG_BIN=$folder
            return 0
        fi
    done
    return 1
}

find_redis() {
    REDIS_BIN=${TIDEGATE_TEST_REDIS_BIN:-$(command -v redis-server || command -v valkey-server || true)}
    [ -n "$REDIS_BIN" ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n true 2>/dev/null || say "asking for your password to install packages"
        sudo "$@"
    else
        return 127
    fi
}

# The machine can install packages for us: Debian or Ubuntu, as root or by sudo.
can_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }
}

servers_missing() {
    MISSING=()
    find_postgres || MISSING+=(postgresql)
    find_redis || MISSING+=(redis-server)
    command -v cc >/dev/null || MISSING+=(gcc libc6-dev)
    command -v sqlite3 >/dev/null || MISSING+=(sqlite3)
    [ ${#MISSING[@]} -gt 0 ]
}

servers_need() {
    if servers_missing; then
        can_install || die "missing: ${MISSING[*]}. Install Postgres 14 or later, Redis 6 or later, a C compiler and sqlite3," \
            "or set TIDEGATE_TEST_PG_BIN (the folder with initdb and postgres) and TIDEGATE_TEST_REDIS_BIN"
        say "installing ${MISSING[*]}"
        as_root apt-get update -qq >&2 || die "apt-get update failed"
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${MISSING[@]}" >&2 ||
            die "apt-get install ${MISSING[*]} failed"
        servers_missing && die "still missing after the installation: ${MISSING[*]}"
    fi
    find_postgres_user
    POSTGRES_VERSION=$("$PG_BIN/postgres" --version | sed 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/')
    [ "${POSTGRES_VERSION%%.*}" -ge 14 ] || die "Postgres $POSTGRES_VERSION in $PG_BIN is older than 14"
}

find_postgres_user() {
    PG_USER=
    [ "$(id -u)" = 0 ] || return 0
    local user
    for user in "${TIDEGATE_TEST_PG_USER:-}" postgres nobody; do
        if [ -n "$user" ] && id -u "$user" >/dev/null 2>&1 && [ "$(id -u "$user")" != 0 ]; then
            PG_USER=$user
            return 0
        fi
    done
    die "Postgres does not run as root, and there is no other user to run it as: make one and set TIDEGATE_TEST_PG_USER"
}

# Runs a command as the user that Postgres runs as.
as_postgres() {
    if [ -z "$PG_USER" ]; then
        "$@"
    elif command -v runuser >/dev/null; then
        runuser -u "$PG_USER" -- "$@"
    else
        su -s /bin/sh "$PG_USER" -c '"$0" "$@"' -- "$@"
    fi
}

# --- the folder -------------------------------------------------------------------------------------

servers_open() {
    local root=${TMPDIR:-/tmp}
    SERVERS_DIR=$(mktemp -d "$root/tidegate-$1.XXXXXX")
    chmod 0711 "$SERVERS_DIR" # lets the user of Postgres through to its own folder
    if ! (cd / && as_postgres test -x "$SERVERS_DIR"); then
        rmdir "$SERVERS_DIR"
        [ "$root" != /tmp ] || die "user $PG_USER cannot enter /tmp"
        SERVERS_DIR=$(mktemp -d "/tmp/tidegate-$1.XXXXXX")
        chmod 0711 "$SERVERS_DIR"
    fi
    mkdir -m 0755 "$SERVERS_DIR/logs"
    trap 'servers_finish $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP PIPE # also when whoever reads the output is gone
}

servers_close() {
    local file
    for file in "$SERVERS_DIR"/*.redis; do [ -e "$file" ] && redis_stop "$(basename "$file" .redis)"; done
    for file in "$SERVERS_DIR"/*.postgres; do [ -e "$file" ] && postgres_stop "$(basename "$file" .postgres)"; done
    return 0
}

# Keeps the logs of a run that failed by itself, drops everything else.
servers_finish() {
    trap - EXIT
    trap '' INT TERM HUP PIPE
    servers_close
    find "$SERVERS_DIR" -mindepth 1 -maxdepth 1 ! -name logs -exec rm -rf {} +
    if [ "$1" = 0 ] || [ "$1" = 130 ] || [ "$1" = 143 ]; then
        rm -rf "$SERVERS_DIR"
    else
        say "the servers' logs are kept in $SERVERS_DIR/logs"
    fi
    exit "$1"
}

# A port that nothing listens on just now, outside the range the kernel hands out by itself. A rival may
# still take it first, so whoever starts a server tries again with another one.
free_port() {
    local port tries
    for tries in $(seq 50); do
        port=$((10000 + (RANDOM * 32768 + RANDOM) % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return 0; }
    done
    die "no free port found in $tries tries"
}

# --- Postgres ---------------------------------------------------------------------------------------

postgres_start() {
    local name=$1 setting tries password
    shift
    local base=$SERVERS_DIR/$name.postgres
    POSTGRES_DATA=$base/data
    if [ ! -e "$base" ]; then
        mkdir -m 0700 "$base"
        password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        printf '%s\n' "$password" >"$base/password"
        [ -z "$PG_USER" ] || chown -R "$PG_USER" "$base"
        (cd / && as_postgres "$PG_BIN/initdb" -D "$POSTGRES_DATA" -U tidegate --encoding=UTF8 --locale=C \
            --auth=scram-sha-256 --pwfile="$base/password" --no-instructions) >"$SERVERS_DIR/logs/$name.initdb.log" 2>&1 ||
            die "initdb failed: $(tail -3 "$SERVERS_DIR/logs/$name.initdb.log")"
        {
            echo "listen_addresses = '127.0.0.1'"
            echo "unix_socket_directories = ''"
            echo "max_connections = 300"
            echo "log_line_prefix = '%m [%p] %d '"
            for setting in "$@"; do echo "${setting%%=*} = '${setting#*=}'"; done
        } >>"$POSTGRES_DATA/postgresql.conf"
    fi
    password=$(cat "$base/password")
    for tries in 1 2 3 4 5; do
        POSTGRES_PORT=$(free_port)
        # The log belongs to this script's user, so that a failed run's log can be read: handed over opened.
        if (cd / && as_postgres "$PG_BIN/pg_ctl" start -w -t 60 -s -D "$POSTGRES_DATA" -o "-p $POSTGRES_PORT") \
            >>"$SERVERS_DIR/logs/$name.postgres.log" 2>&1 </dev/null; then
            POSTGRES_PID=$(head -1 "$POSTGRES_DATA/postmaster.pid")
            # shellcheck disable=SC2034 # for whoever sources this
            POSTGRES_URL="postgres://tidegate:$password@127.0.0.1:$POSTGRES_PORT/postgres"
            return 0
        fi
    done
    die "postgres did not start in $tries tries: $(tail -3 "$SERVERS_DIR/logs/$name.postgres.log")"
}

postgres_stop() {
    (cd / && as_postgres "$PG_BIN/pg_ctl" stop -w -t 30 -s -m immediate -D "$SERVERS_DIR/$1.postgres/data") >/dev/null 2>&1 || true
}

# --- Redis ------------------------------------------------------------------------------------------

redis_start() {
    local name=$1 tries waited
    shift
    local base=$SERVERS_DIR/$name.redis log=$SERVERS_DIR/logs/$name.redis.log
    mkdir -p -m 0700 "$base"
    for tries in 1 2 3 4 5; do
        REDIS_PORT=$(free_port)
        "$REDIS_BIN" --port "$REDIS_PORT" --bind 127.0.0.1 --dir "$base" --save '' --appendonly no "$@" >>"$log" 2>&1 </dev/null &
        REDIS_PID=$!
        echo "$REDIS_PID" >"$base/pid"
        for waited in $(seq 200); do
            kill -0 "$REDIS_PID" 2>/dev/null || break # the port was taken by a rival
            if grep -qs "Ready to accept connections" "$log" && (exec 3<>"/dev/tcp/127.0.0.1/$REDIS_PORT") 2>/dev/null; then
                # shellcheck disable=SC2034 # for whoever sources this
                REDIS_URL="redis://127.0.0.1:$REDIS_PORT/"
                return 0
            fi
            sleep 0.05
        done
        redis_stop "$name"
    done
    die "redis did not start in $tries tries ($waited looks at the last): $(tail -3 "$log")"
}

redis_stop() {
    local pid
    pid=$(cat "$SERVERS_DIR/$1.redis/pid" 2>/dev/null) || return 0
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    rm -f "$SERVERS_DIR/$1.redis/pid"
}
