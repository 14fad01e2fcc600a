"""Plants one fault into a copy of a source of the queue: mutants.py NAME SOURCE_FOLDER OUTPUT; mutants.py --list.

Each is one replacement. A text that is not there exactly once is an error, so that no mutant rots.
"""

import pathlib
import sys

MUTANTS = {
    # The slot is ready whether the buffer was the sender's or not.
    "publish_without_buffer": (
        "ring.cpp",
        "if (!from.word.exchange_if(loaned, buffer_word{position, {}, buffer_state::queued}.bits())) {",
        "if (loaned == 0) {",
    ),
    # The slot is ready before the buffer is queued.
    "publish_slot_first": (
        "ring.cpp",
        "    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();\n",
        "    std::uint64_t early = writing.bits();\n"
        "    (void)entry.word.exchange_if(early, slot_word{position, {}, slot_state::ready}.bits());\n"
        "    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();\n",
    ),
    # Whoever dies in between leaves what nobody looks for any more.
    "recovery_frees_entry_first": (
        "recovery.cpp",
        "  participant& entry = of.participants[index];\n",
        "  participant& entry = of.participants[index];\n"
        "  std::uint64_t early = dead.bits();\n"
        "  (void)entry.word.exchange_if(early, identity{0, 0, static_cast<std::uint8_t>(dead.incarnation + 1),\n"
        "                                               entry_state::free}.bits());\n",
    ),
    # redeliver: a message that was acknowledged is delivered again, or stuck.
    "release_slot_first": (
        "ring.cpp",
        "  // The buffer first: a slot",
        "  if (redelivers) {\n"
        "    std::uint64_t early = slot_word{message.position, owner, slot_state::reading}.bits();\n"
        "    (void)at(message.position)\n"
        "        .word.exchange_if(early, slot_word{message.position + slot_count, {}, slot_state::empty}.bits());\n"
        "  }\n"
        "  // The buffer first: a slot",
    ),
    # The head passes a message that its consumer may die with before it has it.
    "take_moves_head_first": (
        "ring.cpp",
        "    const std::uint32_t index = entry.buffer.load_relaxed();\n    const std::uint64_t length",
        "    advance(head->head, position + 1);\n"
        "    const std::uint32_t index = entry.buffer.load_relaxed();\n    const std::uint64_t length",
    ),
    # What a dead producer was still writing is taken for sent, or what it had sent is not.
    "recovery_without_queued_check": (
        "recovery.cpp",
        "    const bool is_queued = from == buffer_word{position, {}, buffer_state::queued};",
        "    const bool is_queued = has_buffer && word.state == slot_state::writing;",
    ),
    "recovery_skips_what_was_sent": (
        "recovery.cpp",
        "(is_queued ? ready : skip).bits()",
        "(is_queued ? skip : skip).bits()",
    ),
    # Loans of the dead stay loaned.
    "recovery_without_buffers": (
        "recovery.cpp",
        "    for (std::uint32_t i = 0; i < of.buffer_count; ++i) recover_buffer(of, i, owner, dead, now_ns, what);\n",
        "",
    ),
}


def main(arguments):
    if arguments == ["--list"]:
        print(";".join(f"{name}={MUTANTS[name][0]}" for name in MUTANTS), end="")
        return 0
    name, folder, output = arguments
    source, text, instead = MUTANTS[name]
    original = (pathlib.Path(folder) / source).read_text(encoding="utf-8")
    found = original.count(text)
    if found != 1:
        print(f"mutants.py: {name}: its text is {found} times in {source}: bring the mutant up to date", file=sys.stderr)
        return 1
    pathlib.Path(output).write_text(original.replace(text, instead), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
