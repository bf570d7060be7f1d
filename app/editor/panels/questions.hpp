// SPDX-License-Identifier: Apache-2.0
// questions.hpp - the open questions that wait for an answer of the user.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "app/editor/session/document_session.hpp"
#include "app/editor/session/recovery.hpp"

namespace quarry::app {

struct Questions {
  std::vector<RecoveryFile> recoverable;            // offered at the start
  std::function<void()> after_saving;               // runs once unsaved work is saved or discarded
  std::optional<Session::WriteBack> save_question;  // asked before the opened file is written

  bool open() const { return after_saving || save_question || !recoverable.empty(); }
};

}  // namespace quarry::app
