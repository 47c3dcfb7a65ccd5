//! What of a trace matters: statements whose values are stored, and their accesses.

use std::collections::BTreeSet;

use super::machine::{Action, Guard, Trace};
use super::value::{Node, NodeKind, Operand};

impl Trace {
    /// Leaves out statements whose values nobody uses.
    pub(super) fn prune(&mut self) {
        prune(&mut self.actions);
        if let Some(border) = &mut self.border {
            prune(&mut border.actions);
        }
    }

    /// The accesses that statements make.
    pub(super) fn used(actions: &[Action]) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        for action in actions {
            if let Action::Store(access, ..) = action.bare() {
                used.insert(*access);
            }
            leaves(value_of(action), &mut |node| {
                if let NodeKind::Load(access) = node.kind {
                    used.insert(access);
                }
            });
        }
        used
    }

    /// All accesses that matter.
    pub(super) fn all_used(&self) -> BTreeSet<usize> {
        let mut used = Trace::used(&self.actions);
        if let Some(border) = &self.border {
            used.extend(Trace::used(&border.actions));
        }
        used
    }
}

/// The value that a statement computes.
pub(super) fn value_of(action: &Action) -> Option<&Operand> {
    match action {
        Action::Declare(_, _, value, _) => value.as_ref(),
        Action::Assign(_, value, _)
        | Action::Accumulate(_, value, _)
        | Action::Store(_, _, value, _) => Some(value),
        Action::Forget(_) => None,
        Action::Under(_, action) => value_of(action),
    }
}

/// The variable that is set.
fn target(action: &Action) -> Option<&String> {
    match action {
        Action::Declare(name, ..) | Action::Assign(name, ..) | Action::Accumulate(name, ..) => {
            Some(name)
        }
        Action::Under(_, action) => target(action),
        Action::Store(..) | Action::Forget(_) => None,
    }
}

/// Visits the leaves of a value.
pub(super) fn leaves(value: Option<&Operand>, visit: &mut impl FnMut(&Node)) {
    let mut stack: Vec<&Operand> = value.into_iter().collect();
    while let Some(operand) = stack.pop() {
        let Operand::Node(node) = operand else {
            continue;
        };
        match &node.kind {
            NodeKind::Neg(a) => stack.push(a),
            NodeKind::Binary(_, a, b) | NodeKind::Choice(_, a, b) => {
                stack.extend([&**a, &**b]);
            }
            NodeKind::Call(_, arguments) => stack.extend(arguments),
            NodeKind::Select(_, arguments) => stack.extend(&**arguments),
            NodeKind::Number(_)
            | NodeKind::Scalar(_)
            | NodeKind::Local(_)
            | NodeKind::Carried(_)
            | NodeKind::Load(_) => visit(node),
        }
    }
}

/// Backwards: a value matters if it is stored, or if something that matters is made of it.
fn prune(actions: &mut Vec<Action>) {
    let mut live: BTreeSet<String> = BTreeSet::new();
    let mut kept = Vec::new();
    for action in std::mem::take(actions).into_iter().rev() {
        let action = match action {
            Action::Store(..) => action,
            Action::Forget(name) => {
                live.remove(&name);
                Action::Forget(name)
            }
            Action::Declare(name, element, value, span) => {
                // Its name is known to what follows in any case.
                let value = value.filter(|_| live.remove(&name));
                Action::Declare(name, element, value, span)
            }
            Action::Assign(ref name, ..) => {
                if !live.remove(name) {
                    continue;
                }
                action
            }
            Action::Accumulate(ref name, ..) => {
                if !live.contains(name) {
                    continue;
                }
                action
            }
            Action::Under(..) => match target(&action) {
                Some(name) if !live.contains(name) => continue,
                _ => action,
            },
        };
        leaves(value_of(&action), &mut |node| {
            if let NodeKind::Local(name) = &node.kind {
                live.insert(name.clone());
            }
        });
        let mut inner = &action;
        while let Action::Under(guard, own) = inner {
            if let Guard::Data(name, _) = guard {
                live.insert(name.clone());
            }
            inner = own;
        }
        kept.push(action);
    }
    kept.reverse();
    *actions = kept;
}
