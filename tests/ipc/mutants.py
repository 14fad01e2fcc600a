"""Plants one fault into a copy of a source of the queue.

Usage: mutants.py NAME SOURCE_FOLDER OUTPUT, or mutants.py --list.

A fault is one or two replacements of a text. The text must occur exactly once in the source. Otherwise the script fails.
So a change of the source cannot silently make a fault ineffective.
"""

import pathlib
import sys

MUTANTS = {
    # The slot becomes ready even if the buffer no longer belongs to the sender.
    "publish_without_buffer": (
        "ring.cpp",
        "if (!from.word.exchange_if(loaned, buffer_word{position, {}, buffer_state::queued}.bits())) {",
        "if (loaned == 0) {",
    ),
    # The slot becomes ready before the buffer is queued.
    "publish_slot_first": (
        "ring.cpp",
        "    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();\n",
        "    std::uint64_t early = writing.bits();\n"
        "    (void)entry.word.exchange_if(early, slot_word{position, {}, slot_state::ready}.bits());\n"
        "    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();\n",
    ),
    # The entry is freed before the slots and buffers are recovered. So nobody recovers what the dead member had.
    "recovery_frees_entry_first": (
        "recovery.cpp",
        "  participant& entry = of.participants[index];\n",
        "  participant& entry = of.participants[index];\n"
        "  std::uint64_t early = dead.bits();\n"
        "  (void)entry.word.exchange_if(early, identity{0, 0, static_cast<std::uint8_t>(dead.incarnation + 1),\n"
        "                                               entry_state::free}.bits());\n",
    ),
    # The slot is emptied before the buffer is held. If the consumer dies in between, no slot refers to the queued message.
    "take_empties_slot_first": (
        "ring.cpp",
        "    std::uint64_t queued = buffer_word{position, {}, buffer_state::queued}.bits();\n",
        "    std::uint64_t early = reading.bits();\n"
        "    (void)entry.word.exchange_if(early, slot_word{position + slot_count, {}, slot_state::empty}.bits());\n"
        "    std::uint64_t queued = buffer_word{position, {}, buffer_state::queued}.bits();\n",
    ),
    # The head passes a message before the consumer holds it. If the consumer dies in between, it is possible
    # that no other consumer finds the message.
    "take_moves_head_first": (
        "ring.cpp",
        "    const std::uint32_t index = entry.buffer.load_relaxed();\n",
        "    advance(head->head, position + 1);\n    const std::uint32_t index = entry.buffer.load_relaxed();\n",
    ),
    # Two consumers get the same returned message.
    "take_without_claim": (
        "ring.cpp",
        "    if (!buffers[found].word.exchange_if(seen, buffer_word{position, owner, to}.bits())) continue;\n",
        "    (void)buffers[found].word.exchange_if(seen, buffer_word{position, owner, to}.bits());\n",
    ),
    # A consumer is told that no message can come any more, although another consumer holds a message that may be returned.
    "end_without_held": (
        "ring.cpp",
        "    if (redelivers && word.state == buffer_state::held && word.owner != me) return false;\n",
        "",
    ),
    # A consumer reads the number of returns after its search. So it never searches for a message that was returned
    # meanwhile.
    "take_looks_at_number_late": (
        "ring.cpp",
        "      hint.searched.store(returns, std::memory_order_relaxed);\n",
        "      hint.searched.store(head->returns.load(), std::memory_order_relaxed);\n",
    ),
    # Recovery does not increase the number of returns. So no consumer searches for the messages of the dead consumer.
    "recovery_tells_nobody": (
        "recovery.cpp",
        "    (void)of.head->returns.fetch_add(1);\n",
        "",
    ),
    # Recovery increases the number of returns before it returns the messages. A consumer may search in between, and
    # then does not search again.
    "recovery_tells_early": (
        "recovery.cpp",
        "    (void)of.head->returns.fetch_add(1);\n",
        "",
        "    const owner_id owner(index, dead.incarnation);\n",
        "    const owner_id owner(index, dead.incarnation);\n    (void)of.head->returns.fetch_add(1);\n",
    ),
    # requeue() increases the number of returns before it returns the message.
    "requeue_tells_early": (
        "ring.cpp",
        "  (void)head->returns.fetch_add(1);\n",
        "",
        "  entry.deliveries.store_relaxed(0);\n  entry.parked_by.store_relaxed(0);\n  entry.since_ns",
        "  (void)head->returns.fetch_add(1);\n"
        "  entry.deliveries.store_relaxed(0);\n  entry.parked_by.store_relaxed(0);\n  entry.since_ns",
    ),
    # A message that kills its consumers is never parked, so it can kill one consumer after the other.
    "recovery_never_parks": (
        "recovery.cpp",
        "is_withdrawn || entry.deliveries.load_relaxed() > of.max_redeliver",
        "is_withdrawn",
    ),
    # A caretaker dies with a parked message, and consumers get that message.
    "recovery_returns_withdrawn": (
        "recovery.cpp",
        "is_withdrawn || entry.deliveries.load_relaxed() > of.max_redeliver",
        "entry.deliveries.load_relaxed() > of.max_redeliver",
    ),
    # With redeliver, the messages that the dead consumer had are lost.
    "recovery_frees_held": (
        "recovery.cpp",
        "(is_held && !of.redelivers)",
        "is_held",
    ),
    # A message that a dead producer was still writing counts as sent. A message that a dead consumer was about to take
    # is lost.
    "recovery_without_queued_check": (
        "recovery.cpp",
        "  const bool is_queued = from == buffer_word{position, {}, buffer_state::queued};",
        "  const bool is_queued = has_buffer && word.state == slot_state::writing;",
    ),
    # A message that a dead producer had sent is skipped.
    "recovery_skips_what_was_sent": (
        "recovery.cpp",
        "(is_queued ? ready : skip).bits()",
        "(is_queued ? skip : skip).bits()",
    ),
    # A survivor is stopped during a recovery. Another survivor returns the message, and a consumer gets it. Then the
    # first survivor takes the message from that consumer.
    "recovery_overwrites_buffer": (
        "recovery.cpp",
        "if (!entry.word.exchange_if(seen, then.bits()) || is_withdrawn) return;",
        "entry.word.store_release(then.bits());\n  if (is_withdrawn) return;",
    ),
    # A survivor returns a message, and is killed before it increases the number of returns. The next survivor
    # returns no message itself and does not increase the number. So no consumer searches for the message.
    "recovery_tells_only_of_its_own": (
        "recovery.cpp",
        "    (void)of.head->returns.fetch_add(1);\n",
        "    if (what.requeued != 0) (void)of.head->returns.fetch_add(1);\n",
    ),
    # The waiter that came last is woken first, and each waiter takes what it finds.
    "waiters_take_no_turns": (
        "waiting.cpp",
        "(has_first && !one.came_before(first))",
        "(has_first && one.came_before(first))",
        "  return ahead == 0 || of.count_available(kind, ahead + 1) > ahead;\n",
        "  return ahead < of.participant_count;\n",
    ),
    # The queue ends with the last producer, whether more are expected or not.
    "expected_are_ignored": (
        "role_status.cpp",
        "if (seen.expected != 0 && ended < seen.expected) {",
        "if (seen.expected != 0 && seen.expected > kMaxExpected) {",
    ),
    # The creator dies before it has started the expected producers, and consumers still wait for these producers.
    "creators_death_is_ignored": (
        "role_status.cpp",
        "    if ((creator & kDied) == 0) return seen;\n",
        "    return seen;\n",
    ),
    # The queue ends without waiting for the grace time.
    "grace_is_not_awaited": (
        "role_status.cpp",
        "if (shape.grace_ms == 0 || all_closed) {",
        "if (shape.grace_ms <= kMaxGraceMs || all_closed) {",
    ),
    # The grace time begins anew each time a member asks whether it is over. So it is never over.
    "grace_is_never_over": (
        "role_status.cpp",
        "if (absent.version.load(std::memory_order_acquire) != version) {",
        "if (absent.version.load(std::memory_order_acquire) != ~version) {",
    ),
    # All expected members have closed their handles, and the queue still waits for the grace time.
    "grace_after_all_have_closed": (
        "role_status.cpp",
        "seen.ended.closed >= seen.expected",
        "seen.ended.closed > seen.expected",
    ),
    # A death is counted in one step, and the role ends in the next. A second survivor that comes in between counts the
    # same death again.
    "recovery_counts_a_death_twice": (
        "recovery.cpp",
        "    if (word.roles == 0 || place.roles.exchange_if(seen, word.without(word.roles, true).bits())) return;\n",
        "    if (word.roles == 0) return;\n"
        "    role_word then = word.without(word.roles, true);\n"
        "    then.roles = word.roles;\n"
        "    std::uint64_t counted = then.bits();\n"
        "    if (!place.roles.exchange_if(seen, counted)) continue;\n"
        "    then.roles = 0;\n"
        "    if (place.roles.exchange_if(counted, then.bits())) return;\n"
        "    seen = counted;\n",
    ),
    # has() checks each entry only once. It misses a producer that joined in an entry which was already checked, while
    # another producer ended.
    "has_role_asks_once": (
        "members.cpp",
        "std::exchange(before, after) == after",
        "std::exchange(before, after) <= after",
    ),
    # The buffers of dead members are not recovered: loans stay loaned, held messages stay held.
    "recovery_without_buffers": (
        "recovery.cpp",
        "    for (std::uint32_t i = 0; i < of.buffer_count; ++i) recover_buffer(of, i, owner, dead, now_ns, what);\n",
        "",
    ),
}

# Tests that kill one process do not find these faults. The faults show only in certain orders of the steps of several
# processes.
ONLY_BY_ORDERS = {
    "end_without_held",
    "recovery_overwrites_buffer",
    "recovery_tells_early",
    "requeue_tells_early",
    "take_looks_at_number_late",
    "take_without_claim",
}
# These faults lose no message. They change only the order in which waiters are served.
ONLY_BY_TURNS = {"waiters_take_no_turns"}
# Faults in the counts of members that have ended, and in the decision whether further members may come.
ONLY_BY_ROLES = {
    "creators_death_is_ignored",
    "expected_are_ignored",
    "grace_after_all_have_closed",
    "grace_is_never_over",
    "grace_is_not_awaited",
    "has_role_asks_once",
    "recovery_counts_a_death_twice",
}


def find_kind(name):
    """Returns the kind of test that finds the fault.

    deaths: the test kills a process after each change of the segment. orders: the test tries the steps of several processes
    in every order. turns: the test counts the messages that each waiter got. roles: the tests of the roles of members."""
    if name in ONLY_BY_ORDERS:
        return "orders"
    if name in ONLY_BY_ROLES:
        return "roles"
    return "turns" if name in ONLY_BY_TURNS else "deaths"


def main(arguments):
    if arguments == ["--list"]:
        print(";".join(f"{name}={MUTANTS[name][0]}={find_kind(name)}" for name in MUTANTS), end="")
        return 0
    name, folder, output = arguments
    source, *texts = MUTANTS[name]
    mutated = (pathlib.Path(folder) / source).read_text(encoding="utf-8")
    for text, instead in zip(texts[::2], texts[1::2], strict=True):
        found = mutated.count(text)
        if found != 1:
            print(f"mutants.py: {name}: its text occurs {found} times in {source}: update the mutant", file=sys.stderr)
            return 1
        mutated = mutated.replace(text, instead)
    pathlib.Path(output).write_text(mutated, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
