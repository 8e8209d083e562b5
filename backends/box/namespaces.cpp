// Makes and enters network namespaces of Linux, runs `ip` and `tc` in them, and says which setting of the system
// forbids namespaces.

#include "backends/box/namespaces.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::box {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw BackendError(fmt::format("{}: {}", what, std::strerror(errno)));
}

bool write_text(const std::string& path, std::string_view text) {
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.number() >= 0 && write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Where a program of iproute2 is: not every user has /usr/sbin in PATH.
std::string find_program(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"})
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  throw BackendError(
      fmt::format("there is no program '{}', which builds networks: install the package iproute2", name));
}

/// The number that a setting of the kernel has; -1 without it.
int setting(const char* path) {
  const OpenFile file(open(path, O_RDONLY | O_CLOEXEC));
  char text[32] = {};
  if (file.number() < 0 || read(file.number(), text, sizeof text - 1) <= 0) return -1;
  return std::atoi(text);
}

std::string reason_of_refusal(int error) {
  if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
    return "this system lets no ordinary user make namespaces: 'sysctl kernel.apparmor_restrict_unprivileged_userns=0' "
           "as root allows it, or run this as root";
  if (setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
    return "this system lets no ordinary user make namespaces: 'sysctl kernel.unprivileged_userns_clone=1' as root "
           "allows it, or run this as root";
  if (setting("/proc/sys/user/max_user_namespaces") == 0)
    return "user namespaces are switched off on this system: 'sysctl user.max_user_namespaces=1000' as root allows it, "
           "or "
           "run this as root";
  return fmt::format(
      "this process may not make network namespaces ({}): run it as root, or in a container that is privileged",
      std::strerror(error));
}

/// Runs `work` in a child and returns its exit code.
template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child < 0) fail("a process");
  if (child == 0) _exit(work());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

bool may_make_networks() { return unshare(CLONE_NEWNET) == 0; }

}  // namespace

std::string why_no_namespaces() {
  const int error = in_child([] {
    if (may_make_networks()) return 0;
    return unshare(CLONE_NEWUSER) == 0 && may_make_networks() ? 0 : errno;
  });
  if (error != 0) return reason_of_refusal(error);
  for (const char* name : {"ip", "tc"}) try {
      find_program(name);
    } catch (const BackendError& e) {
      return e.what();
    }
  return {};
}

void become_administrator() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (in_child([] { return may_make_networks() ? 0 : 1; }) == 0) return;
  if (unshare(CLONE_NEWUSER) != 0) throw BackendError(reason_of_refusal(errno));
  write_text("/proc/self/setgroups", "deny");
  if (!write_text("/proc/self/uid_map", fmt::format("0 {} 1", user)) ||
      !write_text("/proc/self/gid_map", fmt::format("0 {} 1", group)))
    fail("the user namespace");
}

OpenFile make_namespace() {
  if (unshare(CLONE_NEWNET) != 0) throw BackendError(reason_of_refusal(errno));
  OpenFile file(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail("a network namespace");
  return file;
}

void enter_namespace(int file) {
  if (setns(file, CLONE_NEWNET) != 0) fail("a network namespace");
}

namespace {

/// Makes the mounts of this process private. The root of a chroot need not be a mount, which alone can be made
/// private; then a copy of it is mounted on /proc, which is one everywhere, and becomes the root.
bool make_mounts_private() {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return true;
  const std::unique_ptr<char, decltype(&std::free)> folder(get_current_dir_name(), std::free);
  return folder && mount(nullptr, "/proc", nullptr, MS_PRIVATE, nullptr) == 0 &&
         mount("/", "/proc", nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         mount(nullptr, "/proc", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && chroot("/proc") == 0 &&
         chdir(folder.get()) == 0;
}

/// /etc/hosts has these lines for this process and those that it starts; false where the system forbids it.
bool mount_hosts(const std::string& hosts) {
  if (!make_mounts_private()) return false;
  char path[] = "/tmp/stagecraft-hosts-XXXXXX";
  const OpenFile file(mkostemp(path, O_CLOEXEC));
  if (file.number() < 0) return false;
  const auto mount_there = [&] { return mount(path, "/etc/hosts", nullptr, MS_BIND, nullptr) == 0; };
  // Inside of another network a file is mounted there that has no name any more, on which nothing can be mounted.
  const bool mounted = write(file.number(), hosts.data(), hosts.size()) == static_cast<ssize_t>(hosts.size()) &&
                       fchmod(file.number(), 0644) == 0 &&
                       (mount_there() || (errno == ENOENT && umount2("/etc/hosts", MNT_DETACH) == 0 && mount_there()));
  unlink(path);
  return mounted;
}

}  // namespace

bool join_namespace(pid_t holder, int number, const std::string& name, const std::string& hosts) {
  const auto open_of = [&](const std::string& what) {
    return OpenFile(open(fmt::format("/proc/{}/{}", holder, what).c_str(), O_RDONLY | O_CLOEXEC));
  };
  const OpenFile network = open_of(fmt::format("fd/{}", number));
  if (network.number() < 0) fail(fmt::format("the network of process {}", holder));
  // A process in the user namespace of the holder already is refused with EINVAL, which is as good.
  const OpenFile user = open_of("ns/user");
  struct stat mine {
  }, its{};
  if (stat("/proc/self/ns/user", &mine) != 0 || fstat(user.number(), &its) != 0) fail("a user namespace");
  if (mine.st_ino != its.st_ino && setns(user.number(), CLONE_NEWUSER) != 0) fail("the user namespace of the network");
  enter_namespace(network.number());
  if (unshare(CLONE_NEWUTS) == 0 && sethostname(name.data(), name.size()) != 0) fail("the host name");
  return mount_hosts(hosts);
}

void run_in_namespace(int file, const std::string& program, const std::vector<std::string>& words,
                      std::string_view input) {
  if (input.empty()) return;
  const std::string path = find_program(program);
  char given[] = "/tmp/stagecraft-box-XXXXXX";
  const OpenFile text(mkostemp(given, O_CLOEXEC));
  if (text.number() < 0) fail("a temporary file");
  unlink(given);
  if (write(text.number(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) fail("a temporary file");
  lseek(text.number(), 0, SEEK_SET);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("a pipe");
  const OpenFile from(ends[0]);
  OpenFile to(ends[1]);
  std::vector<const char*> arguments{program.c_str()};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) fail("a process");
  if (child == 0) {
    if (setns(file, CLONE_NEWNET) != 0) _exit(126);
    dup2(text.number(), STDIN_FILENO);
    dup2(to.number(), STDOUT_FILENO);
    dup2(to.number(), STDERR_FILENO);
    execv(path.c_str(), const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  to.close();
  std::string printed;
  char piece[1024];
  for (ssize_t n = 0; (n = read(from.number(), piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) printed.append(piece, n);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return;
  while (!printed.empty() && printed.back() == '\n') printed.pop_back();
  for (char& c : printed)
    if (c == '\n') c = ';';
  throw BackendError(fmt::format("this system could not build the network: {}: {}", program, printed));
}

bool set_in_namespace(int file, const std::string& setting, const std::string& value) {
  // A file of /proc/sys/net is about the namespace of the thread that opens it.
  bool done = false;
  std::thread([&] { done = setns(file, CLONE_NEWNET) == 0 && write_text("/proc/sys/" + setting, value); }).join();
  return done;
}

}  // namespace stagecraft::box
