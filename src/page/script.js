/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live updates, and nothing else: without this script every page works and shows what was true when it was loaded. The server
 * says which part of its state changed; the script fetches the same page again and exchanges the parts that differ. A part is an
 * element with an id inside <main>, or with the class "live". A part in which somebody types or has chosen something stays as it is.
 */
"use strict";

(() => {
	/* The frame of a page names what it shows, and a list adds what it has found. */
	const topicsOf = (root) => [...root.querySelectorAll("[data-live]")].map((element) => element.dataset.live).filter(Boolean).join(" ");
	let topics = topicsOf(document);
	const mark = document.getElementById("live");
	/* For screen readers: what changed. What was done stays where it is, for all to see. */
	const said = document.getElementById("said").appendChild(document.createElement("span"));
	said.className = "hidden";
	let fetching = false;
	let again = false;
	let settled;

	/* Times are shown in the reader's own zone; the exact value stays in the attribute. */
	const localTimes = (root) => {
		for (const time of root.querySelectorAll("time[datetime]")) {
			const date = new Date(time.dateTime);
			if (!Number.isNaN(date.valueOf())) {
				time.title = time.dateTime;
				time.textContent = date.toLocaleString();
			}
		}
	};

	/* Whether exchanging the element would take something away from the person who works in it. */
	const isInUse = (element) => {
		const active = document.activeElement;
		if (element.contains(active) && active.matches("input, textarea, select"))
			return true;
		for (const input of element.querySelectorAll("input, textarea")) {
			if (input.type === "checkbox" || input.type === "radio") {
				if (input.checked !== input.defaultChecked)
					return true;
			} else if (input.type !== "hidden" && input.value !== input.defaultValue) {
				return true;
			}
		}
		return false;
	};

	/* The focus stays on the same control, found by its place among those of the part. */
	const exchange = (old, fresh) => {
		const controls = [...old.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")];
		const at = controls.indexOf(document.activeElement);
		const open = [...old.querySelectorAll("details")].map((details) => details.open);
		localTimes(fresh);
		[...fresh.querySelectorAll("details")].forEach((details, i) => {
			if (open[i] !== undefined)
				details.open = open[i];
		});
		old.replaceWith(fresh);
		if (at >= 0)
			[...fresh.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")][at]?.focus();
	};

	const atEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < 40;

	/* Output only grows: the page says from where on it has to be fetched. */
	const grow = async (element) => {
		const url = new URL(element.dataset.more, location.href);
		url.searchParams.set("since", element.dataset.since);
		const answer = await fetch(url, { headers: { Accept: "text/html" } });
		if (!answer.ok)
			return;
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-since]");
		if (!fresh || fresh.dataset.since === element.dataset.since)
			return;
		const follow = atEnd(element);
		element.dataset.since = fresh.dataset.since;
		element.append(...fresh.childNodes);
		while (element.childNodes.length > 4000 || (element.childNodes.length > 1 && element.textContent.length > 1 << 20))
			element.firstChild.remove();
		if (follow)
			element.scrollTop = element.scrollHeight;
	};

	/* What a page shows may change, and with it what there is to hear of. */
	let stream = null;
	const listen = (wanted) => {
		if (stream && (!wanted || wanted === topics))
			return;
		stream?.close();
		topics = wanted;
		stream = new EventSource("/events?on=" + encodeURIComponent(topics));
		stream.addEventListener("open", () => {
			mark.textContent = "live";
			refresh(); /* what happened until the stream was there was not heard */
		});
		stream.addEventListener("change", () => {
			refresh();
			/* Some of what belongs to a change comes a moment later and is not told: a process that ends, a lock that is free. */
			clearTimeout(settled);
			settled = setTimeout(refresh, 1500);
		});
		stream.addEventListener("error", () => {
			mark.textContent = "not live: the server does not answer";
		});
	};

	const refresh = async () => {
		if (fetching) {
			again = true;
			return;
		}
		fetching = true;
		try {
			for (const element of document.querySelectorAll("[data-more]"))
				await grow(element);
			const url = new URL(location.href);
			url.searchParams.set("refresh", "1");
			const answer = await fetch(url, { headers: { Accept: "text/html" } });
			if (answer.status === 401) {
				location.reload();
				return;
			}
			if (answer.ok && !answer.redirected) {
				const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
				listen(topicsOf(fresh));
				for (const old of document.querySelectorAll("main > [id]:not(#said), .live[id]")) {
					const part = fresh.getElementById(old.id);
					if (!part || old.querySelector("[data-more]") || old.matches("[data-more]"))
						continue;
					localTimes(part);
					if (part.outerHTML !== old.outerHTML && !isInUse(old)) {
						exchange(old, part);
						if (part.dataset.said)
							said.textContent = part.dataset.said;
					}
				}
			}
		} catch {
			/* The server restarts; the stream says when it is there again. */
		}
		fetching = false;
		if (again) {
			again = false;
			setTimeout(refresh, 500);
		}
	};

	localTimes(document);
	for (const element of document.querySelectorAll("[data-more]"))
		element.scrollTop = element.scrollHeight;
	if (topics)
		listen(topics);
})();
