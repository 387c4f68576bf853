/* Opens libchdb.so, which is ClickHouse as a library, and hands the arguments on to
 * clickhouse-local in it:
 *
 *   server LIBCHDB.SO --path DATA ... --query "SYSTEM START LISTEN TCP; ..."
 *
 * Which of its servers listen, and for how long, is a matter of the query. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

static void *find(void *library, const char *name) {
	void *f = dlsym(library, name);
	if (!f) fprintf(stderr, "libchdb: %s\n", dlerror());
	return f;
}

int main(int argc, char **argv) {
	if (argc < 2) {
		fprintf(stderr, "usage: server LIBCHDB.SO [arguments of clickhouse-local]\n");
		return 2;
	}
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	void *(*run)(int, char **) = (void *(*)(int, char **))find(library, "chdb_query_cmdline");
	const char *(*error)(void *) = (const char *(*)(void *))find(library, "chdb_result_error");
	if (!run || !error) return 2;
	signal(SIGPIPE, SIG_IGN); /* a client that is gone ends its connection, as with the packaged server */
	argv[1] = "clickhouse";
	void *result = run(argc - 1, argv + 1);
	const char *what = result ? error(result) : "no result";
	if (what) fprintf(stderr, "%s\n", what);
	return what ? 1 : 0;
}
