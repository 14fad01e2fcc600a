// What a trace remembers, joined with what was seen of the same processes while they hung.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// An operation that did not come back has its stack from before it began. Where its thread was looked at while it waits
// there, Touch::stack becomes the stack of then: it has the lines of Python, and what the compiler put between.
// Where a thread waited at a condition variable or barrier at the fork, and does still, Held::holder_now says where.
void join_look(model::Model& model);

}  // namespace forksight::collect
