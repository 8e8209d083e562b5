#pragma once

#include "sim/plan/message_buffers.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// Makes messages wait for memory: adds waits to a program with rendezvous, and numbers its instructions again where
/// one then waits for a later one.
///
/// *Receiver.* Receives of an edge and direction are posted in the order in which ops read them, and receives
/// from one sender in the order of its sends. A buffer has all messages that one op reads, so with B buffers a receive
/// waits for the end of the op that first frees one of the B that are taken before it. The send starts with its
/// receive. *Sender.* An op that sends over an edge waits until all that the B-th such op before it made has been sent.
///
/// Throws Infeasible "deadlock" with a shortest cycle, and the number of buffers that is enough. O(n log n).
void limit_buffers(Program&, const MessageBuffers&);

}  // namespace stagecraft
