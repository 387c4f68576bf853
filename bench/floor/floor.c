// The floor: the least that a server on epoll does for a keep-alive redirect. One
// thread reads, looks for the end of a head, writes a fixed 302 with the current Date,
// and waits again. It parses nothing, so it is a bound and no server.
//
//	gcc -O2 -o floor floor.c && ./floor 8090
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char answer[512];
static size_t answer_size, date_at;

static void prepare(void) {
	const char *head = "HTTP/1.1 302 Found\r\nCache-Control: private, max-age=0\r\nContent-Length: 0\r\nX-Robots-Tag: noindex\r\nDate: ";
	date_at = strlen(head);
	answer_size = snprintf(answer, sizeof answer, "%sSat, 21 Nov 2026 00:00:00 GMT\r\nLocation: "
		"https://www.example.com/articles/2026/11/a-page-of-usual-length?utm_source=newsletter&id=1234567\r\n\r\n", head);
}

static void renew_date(void) {
	static time_t last;
	time_t now = time(NULL);
	if (now == last) return;
	last = now;
	struct tm tm;
	char text[30];
	strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	memcpy(answer + date_at, text, 29);
}

static void die(const char *what) { perror(what); exit(1); }

static int listen_on(int port) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096)) die("listen");
	return fd;
}

static void watch(int poll, int fd) {
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
}

static void serve(int fd) {
	static char in[16384];
	ssize_t n = read(fd, in, sizeof in);
	if (n < 0 && errno == EAGAIN) return;
	if (n >= 4 && !memcmp(in + n - 4, "\r\n\r\n", 4)) {
		if (n > 11 && !memcmp(in, "GET /readyz", 11)) {
			const char *ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
			if (write(fd, ok, strlen(ok)) > 0) return;
		} else if (write(fd, answer, answer_size) > 0) return;
	}
	close(fd);
}

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	prepare();
	int listener = listen_on(atoi(argv[1])), poll = epoll_create1(0);
	watch(poll, listener);
	fprintf(stderr, "{\"msg\":\"listening\",\"addr\":\"127.0.0.1:%s\"}\n", argv[1]);
	struct epoll_event events[128];
	for (;;) {
		int n = epoll_wait(poll, events, 128, -1);
		renew_date();
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd != listener) {
				serve(fd);
				continue;
			}
			int c = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
			if (c < 0) continue;
			setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			watch(poll, c);
		}
	}
}
