// Checks the enumerators of the trace format, and converts them to those of the model. Also puts the notes of a trace
// into words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/format.hpp"
#include "forksight/trace/handlers.hpp"
#include "forksight/trace/mpi.hpp"
#include "model/model.hpp"

namespace forksight::collect {

// False if this build does not know the value. Then a newer writer wrote the value, and its meaning must not be
// guessed.
bool is_known(trace::LockKind kind);
bool is_known(trace::TouchKind kind);
bool is_known(trace::CureMethod method);
bool is_known(trace::CureResult result);
bool is_known(trace::HandlerPhase phase);
bool is_known(trace::MpiKind kind);
bool is_known(trace::HandlerWaitKind kind);

model::LockKind to_model(trace::LockKind kind);
model::RuntimeKind to_model(trace::RuntimeKind kind);
model::TouchKind to_model(trace::TouchKind kind);
model::TouchAction to_model(trace::TouchAction action);
model::SyncOperation to_model(trace::SyncOperation operation);
std::optional<model::AwaitedKind> to_model(trace::WaitKind kind);  // nullopt: no wait, or an unknown kind
model::CureMethod to_model(trace::CureMethod method);
model::CureResult to_model(trace::CureResult result);
model::CudaWay to_model(trace::CudaWay way);
model::HandlerPhase to_model(trace::HandlerPhase phase);
model::MpiKind to_model(trace::MpiKind kind);
model::HandlerWaitKind to_model(trace::HandlerWaitKind kind);

std::string describe_note(trace::NoteCode code, std::uint64_t value);

}  // namespace forksight::collect
