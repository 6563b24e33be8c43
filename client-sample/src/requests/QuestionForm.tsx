import { useState } from "preact/hooks";
import { makeVisible } from "../text/visible.ts";
import type { Selection } from "./answer.ts";
import type { Question } from "./documents.ts";
import { Quote } from "./forms.tsx";
import type { FormProps } from "./RequestCard.tsx";

const TEXT_LIMIT_CHARACTERS = 8_000;

/** The agent's questions with what they offer, each with room for words of one's own. */
export function QuestionForm({ content, isBusy, onDecide }: FormProps) {
  const { questions } = content;
  const [selections, setSelections] = useState<Selection[]>(() => questions.map(() => ({ options: [], text: "" })));
  const isWhole = selections.every(({ options, text }) => options.length > 0 || text.trim() !== "");
  const change = (index: number, selection: Selection) =>
    setSelections(selections.map((each, at) => (at === index ? selection : each)));
  return (
    <form
      class="questions"
      onSubmit={(event) => {
        event.preventDefault();
        if (isWhole) onDecide?.({ decision: "answer", note: "", selections });
      }}
    >
      {questions.map((question, index) => (
        <OneQuestion
          key={index}
          name={`question-${index}`}
          question={question}
          selection={selections[index] ?? { options: [], text: "" }}
          isDisabled={onDecide === null}
          onChange={(selection) => change(index, selection)}
        />
      ))}
      {onDecide ? (
        <div class="verdict">
          <button type="submit" class="primary" disabled={isBusy || !isWhole}>
            Answer
          </button>
          <button type="button" disabled={isBusy} onClick={() => onDecide({ decision: "deny", note: "", selections: [] })}>
            Decline
          </button>
        </div>
      ) : null}
    </form>
  );
}

interface QuestionProps {
  name: string;
  question: Question;
  selection: Selection;
  isDisabled: boolean;
  onChange: (selection: Selection) => void;
}

function OneQuestion({ name, question, selection, isDisabled, onChange }: QuestionProps) {
  const toggle = (index: number, isOn: boolean) => {
    if (!question.multiSelect) onChange({ options: [index], text: "" });
    else {
      const others = selection.options.filter((each) => each !== index);
      onChange({ ...selection, options: isOn ? [...others, index].sort((a, b) => a - b) : others });
    }
  };
  return (
    <fieldset class="choices" disabled={isDisabled}>
      <legend>
        <Quote>{makeVisible(question.text)}</Quote>
      </legend>
      {question.options.map((option, index) => (
        <label key={index} class="check-field">
          <input
            type={question.multiSelect ? "checkbox" : "radio"}
            name={name}
            checked={selection.options.includes(index)}
            onChange={(event) => toggle(index, event.currentTarget.checked)}
          />
          <span>
            {makeVisible(option.label)}
            {option.description ? <span class="muted"> {makeVisible(option.description)}</span> : null}
          </span>
        </label>
      ))}
      <label class="own-words">
        In your own words
        <input
          value={selection.text}
          maxLength={TEXT_LIMIT_CHARACTERS}
          onInput={(event) => {
            const text = event.currentTarget.value;
            // One answer only: words of one's own take the place of an option.
            onChange({ options: question.multiSelect || !text ? selection.options : [], text });
          }}
        />
      </label>
    </fieldset>
  );
}
