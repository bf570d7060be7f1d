// SPDX-License-Identifier: Apache-2.0
// session_steps.cpp - the editor's session without its window, for tests that make its calls fail or kill it:
//
//   qry-session-steps RECOVERY-FOLDER STEP...      open:FILE  new  recover:FILE  ball:N  undo  save:FILE
//
// Prints "done N" on standard output for each step that the session acknowledged, and the messages for the user on
// standard error. Exit code 0: all steps were acknowledged. 1: one was not, and the session was closed there.
#include <cstdio>
#include <string>

#include "app/editor/session/document_session.hpp"

int main(int count, char** values) {
  using namespace quarry;
  if (count < 3) return 2;
  app::Session session({}, values[1]);
  for (int i = 2; i < count; ++i) {
    const std::string step = values[i], verb = step.substr(0, step.find(':')),
                      rest = step.size() > verb.size() ? step.substr(verb.size() + 1) : "";
    Result<void> done = fail(ErrorCode::bad_usage, "there is no step '" + step + "'");
    if (verb == "open") done = session.open(rest);
    else if (verb == "new") done = session.start_new();
    else if (verb == "recover") done = session.recover(rest);
    else if (verb == "undo") done = session.undo();
    else if (verb == "save") done = session.save_as(rest);
    else if (verb == "ball") {
      Edit edit;
      edit.shape = Shape::sphere;
      edit.a = edit.b = {std::stoi(rest) * 10, 0, 0};
      edit.radius = 4;
      edit.material = 3;
      const auto changed = session.apply(edit);
      done = changed ? Result<void>() : tl::unexpected(changed.error());
    }
    if (!done) {
      std::fprintf(stderr, "quarry: %s\n", done.error().message.c_str());
      return 1;
    }
    std::printf("done %d\n", i - 1);
    std::fflush(stdout);
  }
  return 0;
}
