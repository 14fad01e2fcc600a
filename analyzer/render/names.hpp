// The words that reports use for the values of enumerations.
#pragma once

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::render {

const char* name_of(Certainty certainty);  // "proven"
const char* name_of(Outcome outcome);      // "may-hang"
const char* name_of(CulpritKind kind);     // "file-lock"
const char* name_of(model::CudaWay way);
const char* name_of(model::PoolState state);
const char* name_of(model::Liveness liveness);  // "dead"
const char* name_of(model::WaitKind kind);      // "futex"
const char* name_of(model::EnderKind kind);
const char* name_of(model::FutexUse use);      // "mutex"
const char* name_of(model::RuntimeKind kind);  // "libgomp"
const char* name_of(model::CureMethod method);
const char* name_of(model::CureResult result);

}  // namespace forksight::render
